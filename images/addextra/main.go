// Command addextra checks the folder of what a site adds to an image, and lays out what of it goes where. A bake and
// images/install.sh call it; images/master/extra.sh puts the result into a root file system.
//
//	addextra [-manifest images/master/manifest] FOLDER OUTPUT
//
// OUTPUT/root are the files, OUTPUT/enable the units, and OUTPUT/hash is the folder's.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/images/extra"
)

func main() {
	manifest := flag.String("manifest", "images/master/manifest", "the image's manifest; its files are beside it")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: addextra [-manifest images/master/manifest] FOLDER OUTPUT")
		os.Exit(2)
	}
	if err := layOut(*manifest, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func layOut(manifest, folder, output string) error {
	image, err := extra.OfImage(manifest)
	if err != nil {
		return err
	}
	e, err := extra.Read(folder, os.DirFS(folder), image)
	if err != nil {
		return err
	}
	for _, f := range e.Files {
		path := filepath.Join(output, "root", filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, f.Mode); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(output, "root"), 0o755); err != nil {
		return err
	}
	enable := strings.Join(e.Enabled, "\n")
	if err := os.WriteFile(filepath.Join(output, "enable"), []byte(enable), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(output, "hash"), []byte(e.Hash), 0o644)
}
