// Package extra reads the folder of what a site adds to a master's image, and checks all of it before anything is
// baked (images/README.md has its layout):
//
//	packages        names of Debian packages          proxy     the HTTP proxy of the agent and of containerd
//	manifest        their versions and hashes         sources   where apt finds packages, while it is baked
//	manifest.arm64  the same for images of arm64
//	certificates/   CAs that the machine trusts       units/    units of systemd, and drop-ins
//	files/          other files
//
// What it returns says what goes where. It writes nothing. Each fault names the file, the line, what was found there
// and what is allowed; a folder's faults come all at once.
package extra

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Extra is what a folder adds.
type Extra struct {
	// Packages are the names that were asked for.
	Packages []string
	// Pinned are all packages that come with them.
	Pinned []Package
	// Files are what is put into the image's root file system.
	Files []File
	// Enabled are the units that are enabled.
	Enabled []string
	// Hash is the SHA-256 of the folder's paths, rights and contents.
	Hash string
}

// Package is a pinned package. Hash is the SHA-256 of its file.
type Package struct{ Name, Version, Architecture, Hash string }

// File is one that is put into the image. Path has no leading slash.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content []byte
}

// Image is what the image has without the folder.
type Image struct {
	// Manifest is the name of its manifest, one of Manifests. A folder's pins for it are in a file of the same name.
	Manifest string
	// Debs are the lines of its manifest that begin with "deb image".
	Debs []string
	// Paths are the files of the image's own, without a leading slash: a folder may not replace them.
	Paths []string
}

// Manifests are the names of manifests: amd64's and arm64's.
var Manifests = []string{"manifest", "manifest.arm64"}

// input is one file of the folder.
type input struct {
	path    string
	mode    fs.FileMode
	content []byte
}

const layout = "packages, manifest, manifest.arm64, proxy, sources, README.md, and the folders certificates, units " +
	"and files"

// Read reads a folder, which faults call by the name. Its error holds every fault.
func Read(name string, folder fs.FS, image Image) (Extra, error) {
	r := &reader{folder: name, image: image}
	inputs, err := r.inputs(folder)
	if err != nil {
		return Extra{}, fmt.Errorf("read the folder %s: %w", name, err)
	}
	for _, in := range inputs {
		top, rest, below := strings.Cut(in.path, "/")
		switch {
		case in.path == "packages":
			r.packages(in)
		case in.path == r.image.Manifest:
			r.manifest(in)
		case slices.Contains(Manifests, in.path): // the pins for images of another architecture
		case in.path == "proxy":
			r.proxy(in)
		case in.path == "sources":
			r.sources(in)
		case in.path == "README.md":
		case below && top == "certificates":
			r.certificate(in, rest)
		case below && top == "units":
			r.unit(in, rest)
		case below && top == "files":
			r.file(in, rest)
		default:
			r.fault(in.path, 0, "no part of such a folder", layout)
		}
	}
	r.together()
	r.out.Hash = hashOf(inputs)
	return r.out, errors.Join(r.faults...)
}

// reader collects what the files say, and what is wrong with them.
type reader struct {
	folder string
	image  Image
	out    Extra
	of     string // the pins that the manifest was resolved for
	faults []error
	named  []line // the lines of packages
}

// line is a line of a file that says something.
type line struct {
	number int
	text   string
}

// fault notes one; line 0 is the whole file.
func (r *reader) fault(file string, line int, found, allowed string) {
	at := path.Join(r.folder, file)
	if line > 0 {
		at = fmt.Sprintf("%s:%d", at, line)
	}
	r.faults = append(r.faults, fmt.Errorf("%s: found %s; allowed: %s", at, found, allowed))
}

// inputs are the files of a folder, by path. A link may lead out of it, and would be another file for somebody else.
func (r *reader) inputs(folder fs.FS) (all []input, err error) {
	err = fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			r.fault(name, 0, "a link or a special file", "regular files")
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		// Rights beyond this are the umask's of who checked the folder out.
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		all = append(all, input{name, mode, content})
		return nil
	})
	return all, err
}

func hashOf(inputs []input) string {
	whole := sha256.New()
	for _, in := range inputs {
		sum := sha256.Sum256(in.content)
		fmt.Fprintf(whole, "%s %o %x\n", in.path, in.mode, sum)
	}
	return hex.EncodeToString(whole.Sum(nil))
}

// lines are those that say something: no comments, and none that are empty.
func lines(in input) (out []line) {
	number := 0
	for text := range strings.Lines(string(in.content)) {
		number++
		text = strings.TrimSpace(text)
		if text != "" && !strings.HasPrefix(text, "#") {
			out = append(out, line{number, text})
		}
	}
	return out
}

// add puts a file into the image, once.
func (r *reader) add(from, to string, mode fs.FileMode, content []byte) {
	switch {
	case slices.Contains(r.image.Paths, to):
		r.fault(from, 0, "a file of the image's own, /"+to, "other files; a drop-in of systemd's changes a unit, "+
			"a file of etc/kubernetes/kubelet.conf.d the kubelet")
	case slices.ContainsFunc(r.out.Files, func(f File) bool { return f.Path == to }):
		r.fault(from, 0, "/"+to+" a second time", "each file once")
	default:
		r.out.Files = append(r.out.Files, File{to, mode, content})
	}
}

// places are where files may go. Of the rest, some is each machine's own and some another part's of the folder.
var places = []string{"etc/", "opt/", "usr/"}

// refused are paths below places whose content is each machine's own, or is made of the folder's other parts.
var refused = []string{"etc/machine-id", "etc/hostname", "etc/fstab", "etc/passwd", "etc/shadow", "etc/group",
	"etc/gshadow", "etc/ssh/ssh_host_*", "etc/systemd/system/*", "etc/systemd/system/*/*", "usr/lib/systemd/system/*",
	"usr/lib/systemd/system/*/*", "usr/local/share/ca-certificates/*", "etc/quorate/proxy.env"}

// file takes one of files/.
func (r *reader) file(in input, to string) {
	inPlace := slices.ContainsFunc(places, func(p string) bool { return strings.HasPrefix(to, p) })
	matches := func(pattern string) bool { ok, _ := path.Match(pattern, to); return ok }
	switch {
	case !inPlace:
		r.fault(in.path, 0, "a place that is not for files", "files/etc, files/opt and files/usr")
	case slices.ContainsFunc(refused, matches):
		r.fault(in.path, 0, "a file that is each machine's own, or another part's of this folder",
			"other files; units in units/, CAs in certificates/, the proxy in proxy")
	case hasKey(in.content):
		r.fault(in.path, 0, "a private key", "no secrets: who can read an image has them")
	default:
		r.add(in.path, to, in.mode, in.content)
	}
}

// hasKey finds a private key in PEM.
func hasKey(content []byte) bool {
	_, after, found := strings.Cut(string(content), "-----BEGIN ")
	for found {
		kind, rest, _ := strings.Cut(after, "-----")
		if strings.HasSuffix(kind, "PRIVATE KEY") {
			return true
		}
		_, after, found = strings.Cut(rest, "-----BEGIN ")
	}
	return false
}
