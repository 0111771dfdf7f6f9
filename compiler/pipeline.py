"""The named pipelines, the only place where pass order is written."""

from __future__ import annotations

PIPELINES: dict[str, tuple[str, ...]] = {
    "te-to-low": ("te-to-loop", "reorder-contiguous", "loop-to-low", "promote-buffers"),
    "cpu": ("te-to-loop", "reorder-contiguous", "loop-to-low", "promote-buffers", "plan-buffers"),
}
