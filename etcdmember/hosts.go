package etcdmember

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
)

// hostsPath is where the names of the peers are kept, for every program on the VM.
const hostsPath = "/etc/hosts"

// The marks around the agent's block in /etc/hosts. Everything outside of it is somebody else's and stays.
const (
	hostsBegin = "# begin quorate: the masters of this cluster, kept by its agent"
	hostsEnd   = "# end quorate"
)

// hostsDomain ends every name in the block: replica.Place.DNSName.
const hostsDomain = ".quorate.internal"

// hostsWith returns the text of a hosts file with the agent's block replaced by one line a peer. A line that cannot be ours ends the
// block, so that one that lost its end does not take the rest of the file with it.
func hostsWith(text, cluster string, peers []replica.Peer) string {
	var keep []string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == hostsBegin:
			inside = true
		case trimmed == hostsEnd:
			inside = false
		case inside && strings.HasSuffix(trimmed, hostsDomain):
		default:
			inside = false
			keep = append(keep, line)
		}
	}
	sorted := slices.Clone(peers)
	slices.SortFunc(sorted, func(a, b replica.Peer) int { return strings.Compare(a.Place.String(), b.Place.String()) })
	keep = append(keep, hostsBegin)
	for _, p := range sorted {
		if len(p.Addresses) > 0 {
			keep = append(keep, p.Addresses[0].String()+" "+p.DNSName(cluster))
		}
	}
	return strings.Join(append(keep, hostsEnd), "\n") + "\n"
}

// writeHosts brings a hosts file up to date and reports whether it changed. The file is replaced whole, because it also holds what is
// not ours: a power cut must not leave half of it. Where it is a mount of its own it cannot be replaced and is written in place.
func writeHosts(path, cluster string, peers []replica.Peer) (bool, error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read hosts file: %w", err)
	}
	text := hostsWith(string(old), cluster, peers)
	if text == string(old) {
		return false, nil
	}
	err = durable.WriteFile(path, []byte(text), 0o644)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EROFS) { // a mount point, or the only file here that may be written
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		return false, fmt.Errorf("write hosts file: %w", err)
	}
	return true, nil
}
