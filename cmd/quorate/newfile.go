package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// checkTarget says why a file cannot be put where a person wants it. Asked before anything else is: the writing itself
// would name the temporary file that it begins with.
func checkTarget(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fileFault("write %s: it is a folder; name a file in it", path)
	}
	dir := filepath.Dir(path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fileFault("write %s: there is no folder %s", path, dir)
	case err == nil && !info.IsDir():
		return fileFault("write %s: %s is not a folder", path, dir)
	}
	return nil // whatever else there is, the writing says
}
