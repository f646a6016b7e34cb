#!/bin/bash
# The suite over the chain that the environment names.
exec tests/conformance/conformance "$@"
