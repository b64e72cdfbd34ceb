// Package buckets is Cloud Storage with its objects as files of a folder.
package buckets

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
)

// Server serves Google Cloud Storage's API for a folder: each folder in it is a bucket, and each file below that an
// object. It is an http.Handler and needs no Project. Who plants a file or takes one away changes the bucket; nobody
// else may serve the folder meanwhile.
//
// fake-gcs-server speaks the API, out of memory, where one lock keeps create-if-absent atomic. Its own store of files
// does not keep that: what it cannot read it takes for absent and overwrites, and an object whose server died between
// its bytes and its attributes breaks every listing. Here a change is in its file before anybody can see it or hears
// that it was made; one that was cut short was seen by nobody, and is gone with the process.
type Server struct {
	folder string
	// settings are what the buckets say of themselves.
	settings *settings.Settings
	// granted is nil where everybody may do anything.
	granted Granted

	// mu is held for writing from a change until it is in its file.
	mu     sync.RWMutex
	server *fakestorage.Server
	// served is what there is: the generation of each file, and 0 for each bucket.
	served map[string]int64
}

// Open serves what is in the folder, and makes instance.BucketName where it is absent. Without settings, they are
// those of a local project.
func Open(folder string, s *settings.Settings) (*Server, error) {
	if s == nil {
		s = settings.Local("", "")
	}
	b := &Server{folder: folder, settings: s}
	if err := os.MkdirAll(filepath.Join(folder, instance.BucketName), 0o700); err != nil {
		return nil, fmt.Errorf("make bucket: %w", err)
	}
	return b, b.refresh()
}

// newFile is where a file is before it has its name.
const newFile = ".new"

// list is what there is in the folder. A generation is the microsecond in which an object was made, which its file
// keeps as its time.
func (b *Server) list() (map[string]int64, error) {
	found := map[string]int64{}
	err := filepath.WalkDir(b.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == b.folder {
			return err
		}
		name, err := filepath.Rel(b.folder, path)
		if err != nil {
			return err
		}
		inBucket := strings.Contains(name, "/")
		if d.IsDir() {
			if !inBucket {
				found[name] = 0
			}
			return nil
		}
		info, err := d.Info()
		if inBucket && err == nil {
			found[name] = info.ModTime().UnixMicro()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	return found, nil
}

// refresh serves what is in the folder now. What cannot be read is an error, and not absent. Where somebody else has
// changed a file, uploads that go on are forgotten. b.mu is held.
func (b *Server) refresh() error {
	found, err := b.list()
	if err != nil || b.server != nil && maps.Equal(found, b.served) {
		return err
	}
	var objects []fakestorage.Object
	for name, generation := range found {
		if generation == 0 {
			continue
		}
		content, err := os.ReadFile(filepath.Join(b.folder, name))
		if err != nil {
			return fmt.Errorf("read object: %w", err)
		}
		made := time.UnixMicro(generation).UTC()
		bucket, object, _ := strings.Cut(name, "/")
		objects = append(objects, fakestorage.Object{Content: content, ObjectAttrs: fakestorage.ObjectAttrs{
			BucketName: bucket, Name: object, ContentType: "application/octet-stream", Created: made, Updated: made,
			Generation: generation,
		}})
	}
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, InitialObjects: objects})
	if err != nil {
		return fmt.Errorf("serve buckets: %w", err)
	}
	for name, generation := range found {
		if generation == 0 {
			server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: name})
		}
	}
	b.server, b.served = server, found
	return nil
}

// keep writes the objects that are new or others, and removes the files of those that are gone. b.mu is held.
func (b *Server) keep() error {
	gone := maps.Clone(b.served)
	for bucket, generation := range b.served {
		if generation != 0 {
			continue
		}
		delete(gone, bucket)
		list, err := b.server.ListObjectsWithOptionsPaginated(bucket, fakestorage.ListOptions{})
		if err != nil {
			return fmt.Errorf("list bucket %s: %w", bucket, err)
		}
		for _, o := range list.Objects {
			name := bucket + "/" + o.Name
			delete(gone, name)
			if b.served[name] == o.Generation {
				continue
			}
			if err := b.write(bucket, o.Name); err != nil {
				return fmt.Errorf("write object %s: %w", name, err)
			}
			b.served[name] = o.Generation
		}
	}
	for name := range gone {
		if err := os.Remove(filepath.Join(b.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove object: %w", err)
		}
		delete(b.served, name)
	}
	return nil
}

// write replaces an object's file. It need not survive a power cut: no VM does.
func (b *Server) write(bucket, object string) error {
	if !filepath.IsLocal(object) || strings.HasSuffix(object, "/") {
		return errors.New("no file can have that name")
	}
	o, err := b.server.GetObject(bucket, object)
	if err != nil {
		return err
	}
	temp, path, made := filepath.Join(b.folder, newFile), filepath.Join(b.folder, bucket, object),
		time.UnixMicro(o.Generation)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(temp, o.Content, 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(temp, made, made); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
