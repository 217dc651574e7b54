"""Who is measured. A contender is made with the canned server's URL and returns its jobs.

A job is a function without arguments that does one thing once:

===================  ==========================================================================
``unary(size)``      one call: the task out, the answer in, in the client's own form
``threads(size)``    the same for many threads at once
``fresh(size)``      a new client and one call; returns what closes the client
``decode(size)``     the dictionary of a task to its own form
``encode(size)``     the other way
``statement()``      (no function) what a new interpreter runs to import it
``runtime()``        one call to an agent in the same process
``agent(url)``       one call to a real agent; returns whether the answer is right
``call(wire,         one call over ``"websocket"`` or ``"grpc"``
size)``
``stream(wire,       starts a stream over ``"sse"``, ``"websocket"`` or ``"grpc"`` and returns an
kind)``              iterator over its events
``larger(wire,       two such functions: for a stream with one event, and for one with an event four
kinds)``             times as large
===================  ==========================================================================

Each has those jobs that make sense for it.
"""
