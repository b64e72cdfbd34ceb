package etcdmember

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// hostsPath is where the names of the peers are kept, for every program on the VM.
const hostsPath = "/etc/hosts"

// The marks around the agent's block in /etc/hosts. Everything outside of it is somebody else's and stays.
const (
	hostsBegin = "# begin quorate: the masters of this cluster, kept by its agent"
	hostsEnd   = "# end quorate"
)

// hostsWith returns the text of a hosts file with the agent's block replaced by one line a peer.
func hostsWith(text, cluster string, peers []replica.Peer) string {
	var keep []string
	inside := false
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch strings.TrimSpace(line) {
		case hostsBegin:
			inside = true
		case hostsEnd:
			inside = false
		default:
			if !inside {
				keep = append(keep, line)
			}
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

// writeHosts brings a hosts file up to date and reports whether it changed. It writes in place, not by rename: /etc/hosts
// may be a mount of its own. A reader may find half a file for a moment, and looks the name up again.
func writeHosts(path, cluster string, peers []replica.Peer) (bool, error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read hosts file: %w", err)
	}
	text := hostsWith(string(old), cluster, peers)
	if text == string(old) {
		return false, nil
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return false, fmt.Errorf("write hosts file: %w", err)
	}
	return true, nil
}
