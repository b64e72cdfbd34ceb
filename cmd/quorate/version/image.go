package version

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// ImageFile is where images/master/files.sh writes an image.
const ImageFile = "/usr/lib/quorate/image.json"

// image says what this machine was made from.
type image struct {
	// Commit is of this repository, with "-dirty" where files were changed; unknown where there was no repository.
	Commit string `json:"commit"`
	// Manifest is the SHA-256 of images/master/manifest, which pins all that is in an image.
	Manifest string `json:"manifest"`
	// Pinned is when the manifest was written: no package is newer.
	Pinned time.Time `json:"pinned"`
	// Extra is the SHA-256 of what a site has added; empty: nothing.
	Extra string `json:"extra,omitempty"`
}

// Print prints it for a person.
func (i image) Print(w io.Writer) {
	fmt.Fprintf(w, "image: commit %s, manifest %s, packages of %s\n", i.Commit, i.Manifest,
		i.Pinned.Format(time.RFC3339))
	if i.Extra != "" {
		fmt.Fprintf(w, "image: with what a site has added, %s\n", i.Extra)
	}
}

// ErrNoImage is a machine that is no master, or was made one by other means.
var ErrNoImage = errors.New("this machine was not made from an image of quorate, nor by images/install.sh")

// ReadImage reads the file; ErrNoImage where there is none.
func ReadImage(path string) (image, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return image{}, fmt.Errorf("%w: there is no %s", ErrNoImage, path)
	}
	if err != nil {
		return image{}, fmt.Errorf("read what this machine was made from: %w", err)
	}
	var i image
	if err := json.Unmarshal(text, &i); err != nil { // an image of a newer version may say more
		return image{}, fmt.Errorf("read what this machine was made from: %s: %w", path, err)
	}
	if i.Commit == "" || i.Manifest == "" || i.Pinned.IsZero() {
		return image{}, fmt.Errorf("read what this machine was made from: %s: want commit, manifest and pinned", path)
	}
	return i, nil
}
