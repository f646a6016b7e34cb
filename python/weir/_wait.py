"""The asyncio side of `await event`."""

import asyncio
import os


async def readable(descriptor, finish):
    """Waits until the eventfd is readable, closes it, and returns finish()."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return finish()
