// Package hosts keeps the peers' names in /etc/hosts, and finds them there: a member is known by its name, and a VM
// that is recreated has another address. Everything outside of the agent's block is somebody else's and stays.
package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
)

// Path is where the names of the peers are kept, for every program on the VM.
const Path = "/etc/hosts"

// The marks around the agent's block.
const (
	blockBegin = "# begin quorate: the masters of this cluster, kept by its agent"
	blockEnd   = "# end quorate"
)

// domain ends every name in the block: replica.Place.DNSName.
const domain = ".quorate.internal"

// with returns the text of a hosts file with the agent's block replaced by one line a peer. A line that cannot be
// ours ends the block, so that one that lost its end does not take the rest of the file with it. A master that the
// block has and the peers lack keeps its line: nothing is ever deleted in the record, so it was lost there, and the
// member that runs still has to find its peers. Of two that claim one address the first of peers has it, before one
// that only the block has.
func with(text, cluster string, peers []replica.Peer) string {
	var keep []string
	addresses := map[string]string{} // by name
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == blockBegin:
			inside = true
		case trimmed == blockEnd:
			inside = false
		case inside && strings.HasSuffix(trimmed, domain):
			if f := strings.Fields(trimmed); len(f) == 2 && strings.HasSuffix(f[1], "."+cluster+domain) {
				addresses[f[1]] = f[0]
			}
		default:
			inside = false
			keep = append(keep, line)
		}
	}
	owner := map[string]string{} // of each address, its name
	for _, p := range peers {
		if len(p.Addresses) == 0 {
			continue
		}
		name, address := p.DNSName(cluster), p.Addresses[0].String()
		addresses[name] = address
		if owner[address] == "" {
			owner[address] = name
		}
	}
	keep = append(keep, blockBegin)
	for i, name := range slices.Sorted(maps.Keys(addresses)) {
		address := addresses[name]
		if other := owner[address]; other != "" && other != name {
			address = nobodys(i)
		}
		keep = append(keep, address+" "+name)
	}
	return strings.Join(append(keep, blockEnd), "\n") + "\n"
}

// nobodys is an address that leads nowhere (192.0.2.0/24 is for documentation, RFC 5737), for a name whose own now
// belongs to another. Two names must never have one: a member that joins finds its own entry by comparing the addresses
// of the peer URLs (netutil.URLStringsEqual), and took the id of a deleted master whose address its VM had been given.
func nobodys(i int) string { return fmt.Sprintf("192.0.2.%d", 1+i%254) }

// Write brings a hosts file up to date and reports whether it changed. The file is replaced whole, because it also
// holds what is not ours: a power cut must not leave half of it. Where it is a mount of its own it cannot be replaced
// and is written in place.
func Write(path, cluster string, peers []replica.Peer) (bool, error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read hosts file: %w", err)
	}
	text := with(string(old), cluster, peers)
	if text == string(old) {
		return false, nil
	}
	err = durable.WriteFile(path, []byte(text), 0o644)
	// a mount point, or the only file here that may be written
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EROFS) {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		return false, fmt.Errorf("write hosts file: %w", err)
	}
	return true, nil
}
