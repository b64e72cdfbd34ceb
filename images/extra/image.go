package extra

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// OfImage reads what an image has: its manifest, and its files beside that, in images/master.
func OfImage(manifest string) (image Image, err error) {
	pins := filepath.Dir(manifest)
	image.Manifest = filepath.Base(manifest)
	text, err := os.ReadFile(manifest)
	if err != nil {
		return image, fmt.Errorf("read the image's pins: %w", err)
	}
	for l := range strings.Lines(string(text)) {
		if l = strings.TrimSuffix(l, "\n"); strings.HasPrefix(l, "deb image ") {
			image.Debs = append(image.Debs, l)
		}
	}
	for _, part := range []string{"master", "system"} {
		folder := os.DirFS(filepath.Join(pins, "files", part))
		err := fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				image.Paths = append(image.Paths, path)
			}
			return err
		})
		if err != nil {
			return image, fmt.Errorf("read the image's own files: %w", err)
		}
	}
	for _, name := range Programs {
		image.Paths = append(image.Paths, "usr/local/bin/"+name)
	}
	return image, nil
}

// Programs are the image's own in /usr/local/bin, as images/master/files.sh has them.
var Programs = []string{"quorate", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet",
	"etcdctl", "etcdutl"}
