package addons

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quorate/quorate/addons/plan"
)

// versionFile holds the set's version, in the folder itself.
const versionFile = "version"

const (
	// mostFile is the largest file that is read: more than the largest object that an apiserver takes.
	mostFile = 4 << 20
	// mostDepth ends the walk of a folder that a link has made endless.
	mostDepth = 12
)

// files are what the folder held at one moment: contents by path, relative to the folder, and why others are missing.
type files struct {
	contents map[string][]byte
	faults   []string
	digest   string
}

// readFiles reads the whole folder at once, so that all that follows is of the same moment as the digest. Names that
// begin with a dot are left out: editors and mounts have them.
func readFiles(folder string) files {
	f := files{contents: map[string][]byte{}}
	f.walk(folder, "", 0)
	slices.Sort(f.faults)
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f.contents)) {
		fmt.Fprintf(h, "%q %d\n", name, len(f.contents[name]))
		h.Write(f.contents[name])
	}
	for _, fault := range f.faults {
		fmt.Fprintf(h, "%q\n", fault)
	}
	f.digest = hex.EncodeToString(h.Sum(nil))[:16]
	return f
}

func (f *files) walk(folder, below string, depth int) {
	fail := func(name string, err error) { f.faults = append(f.faults, fmt.Sprintf("%s: %s", name, reason(err))) }
	if depth > mostDepth {
		fail(below, fmt.Errorf("found more than %d folders in one another", mostDepth))
		return
	}
	entries, err := os.ReadDir(filepath.Join(folder, below))
	if err != nil {
		if below == "" {
			below = "the folder"
		}
		fail(below, err)
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := path.Join(below, e.Name())
		info, err := os.Stat(filepath.Join(folder, name)) // follows links
		switch {
		case err != nil:
			fail(name, err)
		case info.IsDir():
			f.walk(folder, name, depth+1)
		case !info.Mode().IsRegular():
			fail(name, fmt.Errorf("found %s; allowed: files and folders", info.Mode().Type()))
		case info.Size() > mostFile:
			fail(name, fmt.Errorf("found %d bytes; allowed: at most %d", info.Size(), mostFile))
		default:
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				fail(name, err)
				continue
			}
			f.contents[name] = content
		}
	}
}

// reason is what went wrong with a file, without the path, which is said beside it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Op + ": " + p.Err.Error()
	}
	return err.Error()
}

// set is what the folder holds, and the manifests themselves.
type set struct {
	plan.Set
	files     string // the digest of the files it was read from
	manifests map[plan.Key]*unstructured.Unstructured
}

// readSet is the set that files hold. It never fails: what cannot be used is a fault of the set.
func readSet(f files) set {
	s := set{Set: plan.Set{Faults: slices.Clone(f.faults)}, files: f.digest,
		manifests: map[plan.Key]*unstructured.Unstructured{}}
	if version, there := f.contents[versionFile]; there {
		v, err := plan.ParseVersion(string(version))
		if err != nil {
			s.fault(versionFile, err)
		}
		s.Version = v
	} else {
		s.fault(versionFile, fmt.Errorf("found no such file; allowed: one that holds the set's version, %s",
			plan.VersionRule))
	}
	s.addFolder(f, "")
	if n := len(s.Objects); n > plan.MostObjects {
		s.fault("the folder", fmt.Errorf("found %d objects; allowed: at most %d", n, plan.MostObjects))
		s.Objects, s.manifests = nil, nil
	}
	if len(s.Objects) == 0 && len(s.Faults) == 0 {
		s.fault("the folder", errors.New("found no object; allowed: one at least. Nothing is deleted for that"))
	}
	slices.SortFunc(s.Objects, func(a, b plan.Object) int { return a.Compare(b.ID) })
	s.Digest = hashOf([]byte(s.Account(f.digest)))
	return s
}

func (s *set) fault(name string, err error) { s.Faults = append(s.Faults, name+": "+reason(err)) }

// addFolder adds a folder's objects: what its kustomization builds, or those of its files and of the folders in it.
func (s *set) addFolder(f files, dir string) {
	if k := kustomization(f, dir); k != "" {
		objects, err := build(f, dir)
		if err != nil {
			s.fault(k, err)
		}
		for _, o := range objects {
			s.add(k, o)
		}
		return
	}
	inside := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(f.contents)) {
		rest, ok := below(dir, name)
		if !ok {
			continue
		}
		if child, _, deeper := strings.Cut(rest, "/"); deeper {
			inside[path.Join(dir, child)] = true
			continue
		}
		switch path.Ext(name) {
		case ".yaml", ".yml", ".json":
			objects, err := decode(f.contents[name])
			if err != nil {
				s.fault(name, err)
			}
			for _, o := range objects {
				s.add(name, o)
			}
		}
	}
	for _, child := range slices.Sorted(maps.Keys(inside)) {
		s.addFolder(f, child)
	}
}

// below is the rest of a path below a folder.
func below(dir, name string) (rest string, ok bool) {
	if dir == "" {
		return name, true
	}
	return strings.CutPrefix(name, dir+"/")
}

// add adds one object. Of two with the same name it is not known which is meant: neither is in the set.
func (s *set) add(source string, u *unstructured.Unstructured) {
	o, err := describe(u)
	if err != nil {
		s.fault(source, err)
		return
	}
	o.Source = source
	if i := slices.IndexFunc(s.Objects, func(x plan.Object) bool { return x.Key() == o.Key() }); i >= 0 {
		s.fault(source, fmt.Errorf("%s is in %s too; allowed: each object once", o.ID, s.Objects[i].Source))
		s.Objects = slices.Delete(s.Objects, i, i+1)
		s.manifests[o.Key()] = nil
		return
	}
	if before, there := s.manifests[o.Key()]; there && before == nil {
		s.fault(source, fmt.Errorf("%s is in other files too; allowed: each object once", o.ID))
		return
	}
	s.Objects = append(s.Objects, o)
	s.manifests[o.Key()] = u
}
