package localgce

import (
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/fault"
)

// order is what a verb is given; each verb reads the fields that it names.
type order struct {
	vm, to, zone, disk, snapshot, path, event, key, value        string
	service, kind, call, code                                    string
	vms, scopes                                                  []string
	address                                                      netip.Addr
	leave, bandwidth, offset, size, capacity                     int64
	bits, skip, times, quota                                     int
	delay, limit, stoppedFor                                     time.Duration
	newAddress, wipe, withDisk, leaveRunning, hideRecord, oneWay bool
	sameID, detached                                             bool
}

// fields are an order's fields by the names that people write. They are flags, because that package reads and explains
// each type.
func (o *order) fields() *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	bytes := func(to *int64, name, usage string) {
		f.Func(name, usage, func(s string) (err error) { *to, err = ParseSize(s); return err })
	}
	f.StringVar(&o.vm, "vm", "", "a VM's name")
	f.StringVar(&o.to, "to", "", "another VM's name")
	f.StringVar(&o.zone, "zone", "", "where a new VM or a disk is; of a fault, the one that is unreachable")
	f.StringVar(&o.disk, "disk", "", "a disk's name; of a host error, fenced (what the former boot syncs fails) or "+
		"copy (it has one of its own)")
	f.StringVar(&o.snapshot, "snapshot", "", "a snapshot's name")
	f.StringVar(&o.path, "path", "", "relative to the disk's top folder; a pattern such as 'etcd/member/wal/*.wal' "+
		"means the last that fits")
	f.StringVar(&o.event, "event", "", strings.Join(maintenanceEvents, ", "))
	f.StringVar(&o.key, "key", "", "an attribute's key")
	f.StringVar(&o.value, "value", "", "an attribute's value")
	f.StringVar(&o.service, "service", "", "metadata, compute or storage")
	f.StringVar(&o.kind, "kind", "",
		listed(fault.Kinds())+"; of storage also empty, of compute also "+listed(fault.Lies(fault.Compute)))
	f.StringVar(&o.code, "code", "", "what an operation that fails says, such as QUOTA_EXCEEDED")
	f.StringVar(&o.call, "call", "", "the requests that a fault is about: a method and the path's last parts, such as "+
		"'POST disks', 'DELETE instances/*' or 'GET operations/*'; all where not given")
	f.IntVar(&o.skip, "skip", 0, "how many of these requests pass before")
	f.IntVar(&o.times, "times", 0, "how many of them are met; all where not given")
	f.IntVar(&o.quota, "quota", 0, "how many requests a minute pass before those that ratelimited refuses")
	f.Func("vms", "the VMs that a fault is about: A,B",
		func(s string) error { o.vms = strings.Split(s, ","); return nil })
	f.Func("scopes", "access scopes by name, such as cloud-platform or devstorage.read_only,logging.write",
		func(s string) error { o.scopes = strings.Split(s, ","); return nil })
	f.Func("address", "an address, or auto for the next free one", func(s string) (err error) {
		if o.newAddress = s == "auto"; !o.newAddress {
			o.address, err = ParseAddress(s)
		}
		return err
	})
	bytes(&o.leave, "leave", "the bytes that stay free, such as 64MiB")
	bytes(&o.capacity, "capacity", "how large a disk becomes, such as 4GiB")
	bytes(&o.bandwidth, "bandwidth", "bytes a second, such as 50MiB")
	f.Int64Var(&o.offset, "offset", 0, "where it begins, in bytes; below 0, from the file's end")
	f.Int64Var(&o.size, "size", 0, "the bytes that are left; below 0, so many fewer than there are")
	f.IntVar(&o.bits, "bits", 1, "how many bits in a row: 1 where not given")
	f.DurationVar(&o.delay, "delay", 0, "how much later, such as 500ms")
	f.DurationVar(&o.limit, "for", 0,
		"how long, such as 1m; a fault of a service: until another takes its place where not given")
	f.DurationVar(&o.stoppedFor, "stopped-for", 0,
		"how long those that are called terminated or stopped have been so: from now on where not given")
	f.BoolVar(&o.wipe, "wipe", false, "a new empty data disk; without it the old one is kept")
	f.BoolVar(&o.withDisk, "with-disk", false, "with the data disk")
	f.BoolVar(&o.leaveRunning, "leave-running", false,
		"the former VM runs on as NAME.1 with its address and disk, unknown to the Compute API; it needs an address")
	f.BoolVar(&o.hideRecord, "hide-record", false, "the former boot does not reach the bucket either")
	f.BoolVar(&o.oneWay, "one-way", false, "only what the first sends to the second")
	f.BoolVar(&o.sameID, "same-id", false, "roll the disk back in place; without it the disk is another, as on GCE")
	f.BoolVar(&o.detached, "detached", false, "the disks of VMs that are absent are attached to nobody")
	return f
}

// OrderError says that an order is none: its verb, or what it is given.
type OrderError struct{ Text string }

// Error implements error.
func (e *OrderError) Error() string { return e.Text }

// parseOrder reads the fields of a verb, each KEY=VALUE; a KEY alone is true.
func parseOrder(name string, args []string) (v verb, o *order, err error) {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == name })
	if i < 0 {
		return v, nil, &OrderError{fmt.Sprintf("there is no verb %q (see localgce do --help)", name)}
	}
	v, o = verbs[i], &order{}
	fields, given := o.fields(), map[string]bool{}
	needed, _, _ := strings.Cut(v.fields, "[")
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			value = "true"
		}
		if !slices.Contains(strings.FieldsFunc(v.fields, func(r rune) bool { return strings.ContainsRune(" []", r) }),
			key) {
			return v, nil, &OrderError{fmt.Sprintf("%s has no field %q; its fields are %s", name, key, v.fields)}
		}
		if err := fields.Set(key, value); err != nil {
			return v, nil, &OrderError{fmt.Sprintf("%s: %s=%s: %v", name, key, value, err)}
		}
		given[key] = true
	}
	for _, key := range strings.Fields(needed) {
		if !given[key] {
			return v, nil, &OrderError{fmt.Sprintf("%s needs %s=...; its fields are %s", name, key, v.fields)}
		}
	}
	return v, o, nil
}

// ParseSize reads a number of bytes, or of MiB or GiB.
func ParseSize(s string) (int64, error) {
	number, unit := s, int64(1)
	for suffix, u := range map[string]int64{"MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			number, unit = n, u
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<62/unit {
		return 0, fmt.Errorf("%q: a number of bytes, or such as 512MiB or 4GiB, is needed", s)
	}
	return n * unit, nil
}

// ParseAddress reads an IPv4 address.
func ParseAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return a, fmt.Errorf("address %q: an IPv4 address such as 10.240.0.7 is needed", s)
	}
	return a, nil
}
