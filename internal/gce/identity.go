package gce

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"github.com/quorate/quorate/internal/pattern"
	"github.com/quorate/quorate/internal/replica"
)

var (
	numericID    = pattern.Of(`^[1-9][0-9]{0,19}$`)
	instanceName = pattern.Of(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	zonePath     = pattern.Of(`^projects/[^/\s]+/zones/([a-z][a-z0-9]*(-[a-z0-9]+)+)$`)
	projectID    = pattern.Of(`^[a-z0-9][-.:a-z0-9]{0,98}$`)
	bootID       = pattern.Of(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// Identity asks who this VM is; only the boot id is the kernel's own word. Every part is checked, since names become
// file names, object names, certificates and members: a value that is missing or malformed is an error that names its
// key.
func (m *Metadata) Identity(ctx context.Context) (replica.Identity, error) {
	var id replica.Identity
	var zone string
	for _, part := range []struct {
		key     string
		form    func() *regexp.Regexp
		allowed string
		field   *string
	}{
		{"instance/id", numericID, "the VM's number", &id.InstanceID},
		{"instance/name", instanceName, "1 to 63 of a-z, 0-9 and -, beginning with a letter", &id.Name},
		{"instance/zone", zonePath, "projects/NUMBER/zones/ZONE", &zone},
		{"project/project-id", projectID, "a project id", &id.Project},
		{"project/numeric-project-id", numericID, "the project's number", &id.ProjectNumber},
	} {
		value, err := m.get(ctx, part.key)
		if err != nil {
			return replica.Identity{}, fmt.Errorf("read the VM's identity: %w", err)
		}
		if *part.field = strings.TrimSpace(value); !part.form().MatchString(*part.field) {
			return replica.Identity{},
				metadataError{fmt.Errorf("read the VM's identity from %s: %s: found %q; allowed: %s", m.name(),
					part.key, shorten(*part.field), part.allowed)}
		}
	}
	id.Zone = zonePath().FindStringSubmatch(zone)[1]
	var err error
	if id.Addresses, err = m.addresses(ctx); err != nil {
		return replica.Identity{}, fmt.Errorf("read the VM's identity: %w", err)
	}
	if id.BootID, err = m.bootID(); err != nil {
		return replica.Identity{}, fmt.Errorf("read the VM's identity: %w", err)
	}
	return id, nil
}

const interfacesPath = "instance/network-interfaces/?recursive=true&alt=json"

// networkInterface is the part of an interface's metadata that holds its own addresses. Forwarded and external ones
// stand in other fields.
type networkInterface struct {
	IP    string   `json:"ip"`
	IPv6s []string `json:"ipv6s"`
}

// addresses are the internal addresses, nic0 first. Of IPv6 only private ones are taken: GCE lists an external one,
// which may be a stranger's tomorrow, in the same field.
func (m *Metadata) addresses(ctx context.Context) ([]netip.Addr, error) {
	text, err := m.get(ctx, interfacesPath)
	if err != nil {
		return nil, err
	}
	var nics []networkInterface
	if err := json.Unmarshal([]byte(text), &nics); err != nil {
		return nil, metadataError{fmt.Errorf("read the interfaces from %s: instance/network-interfaces/: %w", m.name(),
			err)}
	}
	var out []netip.Addr
	for i, nic := range nics {
		for _, text := range append(nonEmpty(nic.IP), nic.IPv6s...) {
			a, err := netip.ParseAddr(text)
			if err != nil || a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() {
				return nil, metadataError{fmt.Errorf("read the interfaces from %s: instance/network-interfaces/%d: "+
					"found %q; allowed: an internal address", m.name(), i, shorten(text))}
			}
			if a.Is4() || a.IsPrivate() {
				out = append(out, a)
			}
		}
	}
	if len(out) == 0 {
		return nil, metadataError{fmt.Errorf("read the interfaces from %s: instance/network-interfaces/: found no "+
			"internal address; allowed: at least nic0's", m.name())}
	}
	return out, nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func (m *Metadata) bootID() (string, error) {
	data, err := os.ReadFile(m.bootIDFile)
	if err != nil {
		return "", fmt.Errorf("read the kernel's boot id: %w", err)
	}
	id := strings.TrimSpace(string(data))
	if !bootID().MatchString(id) {
		return "", fmt.Errorf("read the kernel's boot id: %s: found %q; allowed: a UUID", m.bootIDFile, shorten(id))
	}
	return id, nil
}
