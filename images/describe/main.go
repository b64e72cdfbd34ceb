// Command describe writes what an image is made of, beside it: an SBOM (SPDX) of Debian's packages and of the modules
// of each program, and the build's provenance (an in-toto statement with SLSA's predicate). images/bake.sh calls it.
// Both are made of the manifest and of what the Go linker wrote into the programs, so the same image has the same two.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	var s sources
	flag.StringVar(&s.manifest, "manifest", "images/master/manifest", "the pins")
	flag.StringVar(&s.packages, "packages", "images/master/packages", "the names of packages, with Debian's suites")
	flag.StringVar(&s.programs, "programs", "", "the folder of the image's programs")
	flag.StringVar(&s.commit, "commit", "", "the commit that is baked")
	flag.StringVar(&s.extra, "extra", "", "the folder of what a site adds; empty: nothing is added")
	flag.StringVar(&s.image, "image", "", "the folder of the image, with SHA256SUMS; both files are written there")
	flag.Parse()
	if err := describe(s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "describe:", err)
		os.Exit(1)
	}
}

// sources are where an image's parts are named.
type sources struct{ manifest, packages, programs, commit, image, extra string }

func describe(s sources, rest []string) error {
	if s.programs == "" || s.commit == "" || s.image == "" || len(rest) > 0 {
		return errors.New("-programs, -commit and -image are needed, and nothing else")
	}
	pins, err := readPins(s.manifest, s.packages)
	if err != nil {
		return err
	}
	if err := pins.addExtra(s); err != nil {
		return err
	}
	programs, err := readPrograms(s.programs)
	if err != nil {
		return err
	}
	if err := asPinned(programs, pins.programs); err != nil {
		return err
	}
	if err := ofArchitecture(programs, pins.architecture); err != nil {
		return err
	}
	stamped, err := proven(programs, s.commit)
	if err != nil {
		return err
	}
	files, err := readSums(filepath.Join(s.image, "SHA256SUMS"))
	if err != nil {
		return err
	}
	bill, err := sbom(pins, programs, files, s.commit)
	if err != nil {
		return err
	}
	statement, err := provenance(pins, programs, files, s.commit, stamped)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.image, "sbom.spdx.json"), bill, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.image, "provenance.json"), statement, 0o644)
}
