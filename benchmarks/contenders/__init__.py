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
===================  ==========================================================================

Each has those jobs that make sense for it.
"""
