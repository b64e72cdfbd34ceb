package realtest

import (
	"flag"
	"strconv"
	"testing"
)

// OnlyInCases skips a test that takes long in `make test`. A test of ./test wants its package to be in `make cases`.
func OnlyInCases(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make cases, or go test without -short")
	}
}

// AtOnce sets how many parallel tests of a package run at the same time, for tests that wait more than they compute: by
// default there are as many as cores, which would be idle. -parallel on the command line comes first.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // it is called before the flags of a test's program are there
	}
}
