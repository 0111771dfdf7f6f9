# ruff: noqa: F403
"""Named operators: plain functions that build te computes.

activation.py      activations
adaptive.py        pooling to a size
attention.py       scaled dot-product attention, rotary embeddings
contraction.py     matrix products
convolution.py     convolutions, transposed ones, gradients
cumulative.py      prefix sums and products
division.py        quotients and remainders
elementwise.py     elementwise functions, arithmetic with numpy's broadcasting
formulas.py        scalar formulas without cancellation
gather.py          reads at data-dependent indices
interpolation.py   coordinates and weights of resized dimensions
losses.py          losses of classes and of numbers
normalisation.py   softmax, logsumexp, layer, batch and other norms
operators.py       Python's operators on tensors
padding.py         padding and cropping
pooling.py         maxima and means over windows
ranking.py         top-k, sorting
rearrange.py       permutations of elements: roll, depth_to_space, tril, unfold
recurrent.py       recurrent layers, unrolled
reduction.py       sums, products, extremes, means
resize.py          nearest and bilinear resize of images
resizing.py        resize, with all modes of ONNX's Resize
sampling.py        grid_sample
selection.py       argmax, argmin
shape.py           transpose, reshape, slice, concat
statistics.py      norms, variances, any and all
window.py          sliding windows of convolutions and pooling
common.py          argument checks and helpers of the operators
"""

from typing import TYPE_CHECKING

from compiler.support import plugins
from compiler.te.nn import operators as operators
from compiler.te.nn.activation import *
from compiler.te.nn.adaptive import adaptive_avg_pool as adaptive_avg_pool
from compiler.te.nn.adaptive import adaptive_max_pool as adaptive_max_pool
from compiler.te.nn.attention import attention as attention
from compiler.te.nn.attention import rotary_embedding as rotary_embedding
from compiler.te.nn.contraction import batch_matmul as batch_matmul
from compiler.te.nn.contraction import dense as dense
from compiler.te.nn.contraction import matmul as matmul
from compiler.te.nn.convolution import conv1d as conv1d
from compiler.te.nn.convolution import conv1d_transpose as conv1d_transpose
from compiler.te.nn.convolution import conv2d as conv2d
from compiler.te.nn.convolution import conv2d_grad_data as conv2d_grad_data
from compiler.te.nn.convolution import conv2d_grad_weight as conv2d_grad_weight
from compiler.te.nn.convolution import conv2d_transpose as conv2d_transpose
from compiler.te.nn.convolution import conv3d as conv3d
from compiler.te.nn.convolution import conv3d_transpose as conv3d_transpose
from compiler.te.nn.convolution import depthwise_conv2d as depthwise_conv2d
from compiler.te.nn.cumulative import cumprod as cumprod
from compiler.te.nn.cumulative import cumsum as cumsum
from compiler.te.nn.division import *
from compiler.te.nn.elementwise import *
from compiler.te.nn.gather import embedding as embedding
from compiler.te.nn.gather import gather as gather
from compiler.te.nn.gather import gather_nd as gather_nd
from compiler.te.nn.gather import take_along_axis as take_along_axis
from compiler.te.nn.losses import bce_loss as bce_loss
from compiler.te.nn.losses import cross_entropy as cross_entropy
from compiler.te.nn.losses import kl_div as kl_div
from compiler.te.nn.losses import mse_loss as mse_loss
from compiler.te.nn.losses import nll_loss as nll_loss
from compiler.te.nn.losses import smooth_l1_loss as smooth_l1_loss
from compiler.te.nn.normalisation import batch_norm as batch_norm
from compiler.te.nn.normalisation import batch_norm_training as batch_norm_training
from compiler.te.nn.normalisation import group_norm as group_norm
from compiler.te.nn.normalisation import instance_norm as instance_norm
from compiler.te.nn.normalisation import layer_norm as layer_norm
from compiler.te.nn.normalisation import local_response_norm as local_response_norm
from compiler.te.nn.normalisation import log_softmax as log_softmax
from compiler.te.nn.normalisation import logsumexp as logsumexp
from compiler.te.nn.normalisation import lp_normalize as lp_normalize
from compiler.te.nn.normalisation import rms_norm as rms_norm
from compiler.te.nn.normalisation import softmax as softmax
from compiler.te.nn.padding import pad as pad
from compiler.te.nn.pooling import avg_pool1d as avg_pool1d
from compiler.te.nn.pooling import avg_pool2d as avg_pool2d
from compiler.te.nn.pooling import avg_pool3d as avg_pool3d
from compiler.te.nn.pooling import global_avg_pool as global_avg_pool
from compiler.te.nn.pooling import lp_pool as lp_pool
from compiler.te.nn.pooling import max_pool1d as max_pool1d
from compiler.te.nn.pooling import max_pool2d as max_pool2d
from compiler.te.nn.pooling import max_pool3d as max_pool3d
from compiler.te.nn.pooling import max_pool_with_places as max_pool_with_places
from compiler.te.nn.ranking import sort as sort
from compiler.te.nn.ranking import topk as topk
from compiler.te.nn.rearrange import depth_to_space as depth_to_space
from compiler.te.nn.rearrange import fold as fold
from compiler.te.nn.rearrange import one_hot as one_hot
from compiler.te.nn.rearrange import repeat as repeat
from compiler.te.nn.rearrange import reverse_sequence as reverse_sequence
from compiler.te.nn.rearrange import roll as roll
from compiler.te.nn.rearrange import space_to_depth as space_to_depth
from compiler.te.nn.rearrange import tril as tril
from compiler.te.nn.rearrange import triu as triu
from compiler.te.nn.rearrange import unfold as unfold
from compiler.te.nn.recurrent import gru as gru
from compiler.te.nn.recurrent import lstm as lstm
from compiler.te.nn.recurrent import rnn as rnn
from compiler.te.nn.reduction import max as max
from compiler.te.nn.reduction import mean as mean
from compiler.te.nn.reduction import min as min
from compiler.te.nn.reduction import prod as prod
from compiler.te.nn.reduction import sum as sum
from compiler.te.nn.resize import resize_bilinear as resize_bilinear
from compiler.te.nn.resize import resize_nearest as resize_nearest
from compiler.te.nn.resizing import resize as resize
from compiler.te.nn.sampling import grid_sample as grid_sample
from compiler.te.nn.selection import argmax as argmax
from compiler.te.nn.selection import argmin as argmin
from compiler.te.nn.shape import broadcast_to as broadcast_to
from compiler.te.nn.shape import concat as concat
from compiler.te.nn.shape import expand_dims as expand_dims
from compiler.te.nn.shape import flatten as flatten
from compiler.te.nn.shape import flip as flip
from compiler.te.nn.shape import reshape as reshape
from compiler.te.nn.shape import slice as slice
from compiler.te.nn.shape import squeeze as squeeze
from compiler.te.nn.shape import stack as stack
from compiler.te.nn.shape import tile as tile
from compiler.te.nn.shape import transpose as transpose
from compiler.te.nn.statistics import all as all
from compiler.te.nn.statistics import any as any
from compiler.te.nn.statistics import norm as norm
from compiler.te.nn.statistics import std as std
from compiler.te.nn.statistics import var as var

__all__ = sorted(name for name, value in globals().items() if callable(value))


ELSEWHERE = {
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "true_divide": "div",
    "power": "pow",
    "negative": "neg",
    "concatenate": "concat",
    "select": "where",
}
"""Map names of numpy and topi to those of our operators, for the hint of an error."""

if not TYPE_CHECKING:

    def __dir__() -> list[str]:
        return [*globals(), *plugins.parts("operator")]

    def __getattr__(name: str) -> object:
        """Return a plugin's operator. Raises AttributeError, with a similar name, for an unknown one."""
        from compiler.support.text import unknown

        if name.startswith("_"):
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        added = plugins.parts("operator")
        if name not in added and name in ELSEWHERE:
            raise AttributeError(f"there is no operator '{name}'; it is te.nn.{ELSEWHERE[name]}")
        if name not in added:
            raise AttributeError(unknown("operator", name, [*__all__, *added]))
        return added[name].guarded
