from compiler.frontends import *
from strata.frontends import torch as torch
