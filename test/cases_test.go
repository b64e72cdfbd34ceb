package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// casesLine lists the packages of `make cases`.
var casesLine = regexp.MustCompile(`(?m)^CASES := (.*)$`)

// What -short leaves out or makes shorter must run somewhere: in `make cases`, which .ci/run runs too.
func TestWhatMakeTestLeavesOutIsInMakeCases(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := casesLine.FindStringSubmatch(string(makefile))
	if line == nil || !strings.Contains(string(makefile), "m $(CASES)\n") {
		t.Fatal("the Makefile's target cases no longer tests $(CASES)")
	}
	var asking []string
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") {
			return err
		}
		text, err := os.ReadFile(path)
		dir, _, _ := strings.Cut("./"+strings.TrimPrefix(filepath.Dir(path), "../"), "/testdata")
		asks := func(how string) bool { return strings.Contains(string(text), how) }
		if (asks("testing.Short()") || asks("OnlyInCases(t)") || asks("[short] skip")) &&
			!slices.Contains(asking, dir) {
			asking = append(asking, dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(line[1])
	slices.Sort(asking)
	slices.Sort(listed)
	if !slices.Equal(asking, listed) {
		t.Errorf("make cases tests %v; tests of %v ask for -short", listed, asking)
	}
}
