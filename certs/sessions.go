package certs

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
)

// EtcdSessions has EtcdTLS for an agent that connects again and again, as it does to members while there is no quorum.
// The configuration and its sessions serve while the leaf and the trust bundle stay as they are. A connection that
// resumes a session costs either side no signature, no chain of certificates and no reading of their files. etcd
// forgets its side of the sessions when it is started again, as it has to be for another trust bundle, and Go's TLS
// resumes none whose certificates have run out. Its method may be called concurrently.
type EtcdSessions struct {
	files Files

	mu   sync.Mutex
	kept *tls.Config // nil: none was made yet
	of   [2]os.FileInfo
}

// NewEtcdSessions makes nothing yet.
func NewEtcdSessions(f Files) *EtcdSessions { return &EtcdSessions{files: f} }

// TLS is the configuration for the files as they are.
func (s *EtcdSessions) TLS() (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var now [2]os.FileInfo
	for i, path := range []string{s.files.Leaf(AgentEtcd), s.files.CA(EtcdClient)} {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("connect to etcd: %w", err)
		}
		now[i] = info
	}
	if s.kept != nil && same(s.of[0], now[0]) && same(s.of[1], now[1]) {
		return s.kept, nil
	}
	made, err := EtcdTLS(s.files)
	if err != nil {
		return nil, err
	}
	made.ClientSessionCache = tls.NewLRUClientSessionCache(0) // one session for each member
	s.kept, s.of = made, now
	return made, nil
}

// same: files are replaced whole, so nothing of one has changed if this has not.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
