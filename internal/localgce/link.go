package localgce

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Link is how a VM's link behaves; the zero value is as fast as the machine.
type Link struct {
	// Bandwidth is what goes through in each direction, in bytes a second: 10 kB to 10 GB; 0 is no limit.
	Bandwidth int64
	// Delay is added in each direction, 1 ms to 10 s. It needs the kernel's netem, which not every kernel has.
	Delay time.Duration
}

// SetLink limits a VM's link from now on, also at its next boots.
func (p *Project) SetLink(ctx context.Context, name string, l Link) error {
	if l.Bandwidth != 0 && (l.Bandwidth < 1e4 || l.Bandwidth > 1e10) {
		return fmt.Errorf("bandwidth %d: 10000 to 10000000000 bytes a second are allowed, or 0 for no limit",
			l.Bandwidth)
	}
	if l.Delay != 0 && (l.Delay < time.Millisecond || l.Delay > 10*time.Second) {
		return fmt.Errorf("delay %s: 1ms to 10s are allowed, or 0", l.Delay)
	}
	return p.operate(name, "", func(v *vm) error {
		if v.machine != nil {
			if err := p.fabric.shape(ctx, v.record, l, v.link); err != nil {
				return fmt.Errorf("limit the link of %s: %w", name, err)
			}
		}
		p.mu.Lock()
		v.link = l
		p.mu.Unlock()
		return nil
	})
}

// shape brings both ends of a VM's link from one state to another; where that fails, back.
func (f fabric) shape(ctx context.Context, v record, to, from Link) error {
	if to == from {
		return nil
	}
	ends := [][2]string{{f.names.fabric(), port(v.Index)}, {f.names.vm(v.Slot), "eth0"}}
	var errs []error
	for _, end := range ends {
		errs = append(errs, tc(ctx, end[0], end[1], to))
	}
	err := errors.Join(errs...)
	if err != nil {
		for _, end := range ends {
			_ = tc(ctx, end[0], end[1], from) // it was so a moment ago
		}
	}
	return err
}

// tc sets the queueing of one end. A token bucket alone limits bandwidth; delay is netem's, which then limits too.
func tc(ctx context.Context, namespace, device string, l Link) error {
	args := []string{"-n", namespace, "qdisc", "replace", "dev", device, "root"}
	rate := fmt.Sprintf("%dbps", l.Bandwidth) // bytes a second, in tc's words
	switch {
	case l.Delay > 0:
		args = append(args, "netem", "limit", "100000", "delay", fmt.Sprintf("%dus", l.Delay.Microseconds()))
		if l.Bandwidth > 0 {
			args = append(args, "rate", rate)
		}
	case l.Bandwidth > 0:
		args = append(args, "tbf", "rate", rate, "burst", fmt.Sprint(max(l.Bandwidth/50, 64<<10)), "latency", "100ms")
	default:
		args = []string{"-n", namespace, "qdisc", "del", "dev", device, "root"}
	}
	_, err := run(ctx, "tc", args...)
	switch {
	case err != nil && len(args) == 7: // there was none
		return nil
	case err != nil && l.Delay > 0 && strings.Contains(err.Error(), "qdisc kind is unknown"):
		return fmt.Errorf("delay needs netem, which this kernel lacks (modprobe sch_netem); bandwidth alone needs "+
			"none: %w", err)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("program tc is needed (apt-get install iproute2): %w", err)
	}
	return err
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
		cmd := exec.CommandContext(ctx, "ss", "-H", "-K", "-t", "-n", "dst", address.String())
		var out, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &stderr
		err := inNamespace(p.names.vm(v.Slot), cmd.Start)
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			return fmt.Errorf("reset connections of %s: %s (%w)", a, firstLine(stderr.String()), err)
		}
		n = strings.Count(out.String(), "\n")
		return nil
	})
	return n, err
}
