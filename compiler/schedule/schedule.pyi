# Written by tools/docs.py from the declarations of the primitives.
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from compiler.schedule.parameters import Handle as Handle
from compiler.schedule.parameters import Size as Size
from compiler.schedule.recorder import Recorder
from compiler.schedule.script import Script
from compiler.schedule.script import script_of as script_of

class Schedule(Recorder):
    def add_unit_loop(self, loop: Handle | str) -> Handle:
        """Put a loop of one iteration around a loop."""

    def annotate(self, loop: Handle | str, key: str, value: Attribute | int | float | str) -> None:
        """Attach a named attribute to a loop, for a lowering or rule that reads it."""

    def auto(self, block: Handle | str) -> None:
        """Derive the choices for a block here, by the rules for the machine."""

    def bind(self, loop: Handle | str, thread: str) -> None:
        """Bind a loop to a hardware index: block_x to block_z, thread_x to thread_z, or vthread; "blockIdx.x" is block_x."""

    def cache_read(self, block: Handle | str, buffer: str, scope: str = ..., read: int = ...) -> Handle:
        """Copy a buffer that a block reads into another scope, and read the copy."""

    def cache_write(self, block: Handle | str, scope: str = ...) -> Handle:
        """Compute a block's results in another scope and copy them out."""

    def compute_at(self, block: Handle | str, loop: Handle | str) -> None:
        """Move a producer into a loop of its consumers: there it computes the elements that one iteration reads."""

    def decompose_reduction(self, block: Handle | str, loop: Handle | str) -> Handle:
        """Make the init of a reduction, or the first value of a recurrence, a separate block before a loop."""

    def distribute(self, loop: Handle | str, block: Handle | str) -> list[Handle]:
        """Split the body of a loop after the node that contains a block, and run each part in a separate loop."""

    def double_buffer(self, block: Handle | str, copies: int = ...) -> None:
        """Give a block's buffer two copies, or more, so that one is filled while the others are read."""

    def fuse(self, *loops: Handle | str) -> Handle:
        """Fuse perfectly nested loops into one, whose variable runs over their product."""

    def get_block(self, label: str) -> Handle:
        """Find a block by its label."""

    def get_consumers(self, block: Handle | str) -> list[Handle]:
        """The blocks that read a block's results, in the order of the program."""

    def get_loops(self, block: Handle | str) -> list[Handle]:
        """The loops around a block, outermost first."""

    def get_producers(self, block: Handle | str) -> list[Handle]:
        """The blocks whose results a block reads, in the order of the program."""

    def inline(self, block: Handle | str) -> None:
        """Replace every read of a block's result by the block's body, and drop the block."""

    def join_axes(self, block: Handle | str) -> None:
        """Replace adjacent axes of a block, which one fused loop runs over in row-major order, by one axis."""

    def lift_alloc(self, buffer: str, loop: Handle | str | None = ...) -> None:
        """Move the beginning of a buffer's lifetime out: to a loop that encloses it, or to the function."""

    def merge(self, first: Handle | str, second: Handle | str, shift: int = ...) -> Handle:
        """Let two adjacent nests share their outer loop: bodies one after the other. With a shift, iteration i of the second runs in iteration i + shift. If the extents differ, the bodies are guarded."""

    def pack(self, block: Handle | str, buffer: str, tiles: Sequence[Size], order: Sequence[int] = ...) -> Handle:
        """Read a buffer through a blocked, padded copy with a tile size for each dimension (1 for none)."""

    def pad(self, block: Handle | str, buffer: str) -> Handle:
        """Read a buffer through a copy with a border that holds the values read where a condition fails."""

    def parallel(self, loop: Handle | str) -> None:
        """Mark a loop whose iterations run on several threads."""

    def partition(self, loop: Handle | str, position: int) -> list[Handle]:
        """Cut a loop in two, one after the other: the iterations below a position, and the rest."""

    def prefetch(self, loop: Handle | str, buffer: str, ahead: int, over: Handle | str | None = ...) -> None:
        """Prefetch the elements of a buffer that a loop touches some iterations later."""

    def reindex(self, block: Handle | str, buffer: str) -> Handle:
        """Read a buffer through a copy that is indexed by the axes of the block: a matrix of windows, for example."""

    def reorder(self, *loops: Handle | str) -> None:
        """Permute loops of one nest into the order given, outermost first; loops between them stay where they are."""

    def reverse(self, loop: Handle | str) -> Handle:
        """Run a loop backwards."""

    def reverse_compute_at(self, block: Handle | str, loop: Handle | str) -> None:
        """Move a consumer into a loop of its producer: there it consumes the elements that one iteration has finished."""

    def reverse_inline(self, block: Handle | str) -> None:
        """Apply an elementwise consumer where its producer writes, and drop the consumer."""

    def rfactor(self, block: Handle | str, loop: Handle | str) -> Handle:
        """Reduce along one loop into a buffer of partial results, and combine those afterwards."""

    def sample_location(self, block: Handle | str, decision: int | None = ...) -> Handle:
        """Choose the loop at which a block is computed."""

    def sample_perfect_tile(self, loop: Handle | str, parts: int, innermost: int = ..., decision: Sequence[int] | None = ...) -> list[Handle]:
        """Choose factors whose product is a loop's extent, the innermost at most `innermost`."""

    def set_scope(self, block: Handle | str, scope: str) -> None:
        """Set the scope of the buffers that a block writes."""

    def software_pipeline(self, loop: Handle | str, stages: Sequence[int]) -> Handle:
        """Overlap the iterations of a loop: part number i of its body runs stages[i] iterations late."""

    def split(self, loop: Handle | str, factors: Sequence[Size | None] | Size, tail: str = ...) -> list[Handle]:
        """Split a loop into a nest, outermost factor first; one factor may be None and is inferred."""

    def stage(self, loop: Handle | str, buffer: str, scope: str = ...) -> list[Handle]:
        """Work on a copy of the window of a buffer that a loop's body touches: copy it in, work, copy it out."""

    def storage_align(self, block: Handle | str, dim: int, factor: int, offset: int = ...) -> None:
        """Pad a block's buffer so that the stride of a dimension is `offset` beyond a multiple of `factor`, in elements."""

    def swizzle(self, block: Handle | str, width: int) -> None:
        """Rotate the columns of a block's buffer by the row, within groups of `width`, against bank conflicts."""

    def tensorize(self, loop: Handle | str, intrinsic: str) -> None:
        """Mark the nest from a loop inward as one that a declared intrinsic replaces."""

    def trim(self, loop: Handle | str) -> None:
        """End a loop with the last iteration whose results are needed."""

    def unroll(self, loop: Handle | str) -> None:
        """Mark a loop to be unrolled by the lowering."""

    def vectorize(self, loop: Handle | str) -> None:
        """Mark a loop whose iterations become the lanes of vectors."""

def replay(script: Script, x: ModuleOp | Schedule, name: str | None = ..., seed: int = ...) -> Schedule: ...
