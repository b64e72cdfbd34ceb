package localgce

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/localgce/network"
)

// Link is what SetLink takes.
type Link = network.Link

// SetLink limits a VM's link from now on, also at its next boots.
func (p *Project) SetLink(ctx context.Context, name string, l network.Link) error {
	if err := l.Validate(); err != nil {
		return err
	}
	return p.operate(name, "", func(v *vm) error {
		if v.machine != nil {
			if err := p.fabric.Shape(ctx, p.port(v), l, v.link); err != nil {
				return fmt.Errorf("limit the link of %s: %w", name, err)
			}
		}
		p.mu.Lock()
		v.link = l
		p.mu.Unlock()
		return nil
	})
}

// ResetConnections breaks every TCP connection between two VMs that a has, as a stateful firewall does that lost its
// table: both ends see a reset. It says how many they were.
func (p *Project) ResetConnections(ctx context.Context, a, b string) (n int, err error) {
	other, err := p.vm(b)
	if err != nil {
		return 0, err
	}
	if a == b {
		return 0, fmt.Errorf("reset connections of %s with itself: two VMs are needed", a)
	}
	err = p.operate(a, statusRunning, func(v *vm) error {
		p.mu.Lock()
		address := other.Address
		p.mu.Unlock()
		if n, err = p.fabric.ResetConnections(ctx, p.port(v), address); err != nil {
			return fmt.Errorf("reset connections of %s: %w", a, err)
		}
		return nil
	})
	return n, err
}

// networkConfig is what the fabric has to know of the project.
func (p *Project) networkConfig() network.Config {
	return network.Config{Namespace: p.names.Fabric(), HostLink: p.names.HostLink(), Subnet: p.conf.Subnet,
		NoHostRoute: p.conf.NoHostRoute}
}

// port is a VM as the fabric has to know it.
func (p *Project) port(v *vm) network.Port {
	return network.Port{Index: v.Index, Namespace: p.names.VM(v.Slot), Address: v.Address}
}
