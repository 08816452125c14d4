// The precompiled header of tests of torch-using rooms. c10's logging header defines a CHECK of its own, which would abort the
// test program: it comes first here and is undefined, so that CHECK is Catch2's in every test.
#pragma once

#include "../src/pch.h"

#undef CHECK
#include <catch2/catch.hpp>
