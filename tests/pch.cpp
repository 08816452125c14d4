// Gives the tests' precompiled headers a target of their own to live in.
