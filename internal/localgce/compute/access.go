package compute

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// accessName and accessType are those of a VM's only access config.
const (
	accessName = "External NAT"
	accessType = "ONE_TO_ONE_NAT"
	// nic is a VM's only network interface.
	nic = "nic0"
)

// accessRequest is an access config as it is asked for, as far as it is understood here.
type accessRequest struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Address string `json:"natIP"`
	Tier    string `json:"networkTier"`
}

// addAccessConfig answers instances.addAccessConfig: when it is over, the reserved address is the VM's.
func (c *Server) addAccessConfig(w http.ResponseWriter, r *http.Request) {
	var asked accessRequest
	unread := decode(r, &asked)
	c.orderBy(w, r, "addAccessConfig", []string{"compute.instances.addAccessConfig", "compute.addresses.use",
		"compute.subnetworks.useExternalIp"}, func() (job, *refusal) {
		i, t, refused := c.namedInstance(r)
		if refused = firstOf(unread, refused, checkInterface(r)); refused != nil {
			return job{}, refused
		}
		if i.ExternalIP.IsValid() {
			return job{}, invalid("accessConfigs", "2", "At most one access config currently supported.")
		}
		address, refused := c.freeAddress(t, asked)
		return job{target: t, then: func() error {
			c.orders.Lock()
			defer c.orders.Unlock()
			if _, taken := c.freeAddress(t, asked); taken != nil {
				return failure{"IP_IN_USE_BY_ANOTHER_RESOURCE", taken.text}
			}
			return c.setExternalIP(i.ID, address)
		}}, refused
	})
}

// deleteAccessConfig answers instances.deleteAccessConfig: when it is over, nobody has the address.
func (c *Server) deleteAccessConfig(w http.ResponseWriter, r *http.Request) {
	c.order(w, r, "deleteAccessConfig", "compute.instances.deleteAccessConfig", func() (job, *refusal) {
		i, t, refused := c.namedInstance(r)
		name := r.URL.Query().Get("accessConfig")
		if refused = firstOf(refused, checkInterface(r)); refused == nil &&
			(!i.ExternalIP.IsValid() || name != accessName) {
			refused = invalid("accessConfig", name, "The specified access config does not exist.")
		}
		return job{target: t, then: func() error { return c.setExternalIP(i.ID, netip.Addr{}) }}, refused
	})
}

func (c *Server) setExternalIP(id uint64, address netip.Addr) error {
	if err := c.conf.Changes.SetExternalIP(id, address); err != nil {
		return err
	}
	return c.changedForwarding()
}

// checkInterface refuses another interface than the only one.
func checkInterface(r *http.Request) *refusal {
	if name := r.URL.Query().Get("networkInterface"); name != nic {
		return invalid("networkInterface", name, "The network interface does not exist.")
	}
	return nil
}

// freeAddress is the reserved address that is asked for at an instance, if nothing has it; the zero value where none is
// asked for. Google draws one where none is named, and localgce does not.
func (c *Server) freeAddress(of target, asked ...accessRequest) (netip.Addr, *refusal) {
	if len(asked) == 0 {
		return netip.Addr{}, nil
	}
	a := asked[0]
	switch {
	case len(asked) > 1:
		return netip.Addr{}, invalid("accessConfigs", "2", "At most one access config currently supported.")
	case a.Type != accessType:
		return netip.Addr{}, invalid("accessConfigs[0].type", a.Type, "Must be "+accessType+".")
	case a.Name != accessName:
		return netip.Addr{}, invalid("accessConfigs[0].name", a.Name, "localgce calls it "+accessName+".")
	}
	for _, o := range c.keptOf("addresses", target{region: instance.RegionOf(of.zone)}) {
		kind, _ := o.fields["addressType"].(string)
		if o.fields["address"] != a.Address || kind == "INTERNAL" {
			continue
		}
		tier, _ := o.fields["networkTier"].(string)
		if a.Tier != "" && tier != "" && a.Tier != tier {
			return netip.Addr{}, invalid("accessConfigs[0].networkTier", a.Tier, "The network tier of the address is "+
				tier+".")
		}
		address, err := netip.ParseAddr(a.Address)
		if err != nil {
			return address, invalid("accessConfigs[0].natIP", a.Address, "It is no address.")
		}
		return address, firstOf(c.checkUnused(o), c.checkReady(o.target))
	}
	return netip.Addr{}, invalid("accessConfigs[0].natIP", a.Address, "The specified external IP address was not found.")
}

// checkUnused refuses an address that something has.
func (c *Server) checkUnused(o keptOne) *refusal {
	users := c.users(o)
	if len(users) == 0 {
		return nil
	}
	address, _ := o.fields["address"].(string)
	return &refusal{http.StatusBadRequest, "resourceInUseByAnotherResource", "IP address '" + address +
		"' is already being used by '" + strings.TrimPrefix(users[0], fullLink("")) + "'"}
}
