package localgce

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/internal/localgce/disk"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/network"
)

// verb is something that can befall a project, as Clients and `localgce do` name it.
type verb struct {
	name string
	// fields are those of an order that it needs, and in brackets those that it may have.
	fields string
	does   string
	do     func(context.Context, *Project, *order) (said string, err error)
}

// verbs are all of them.
var verbs = []verb{
	{"vm/create", "vm zone [address disk]", "create a VM and start it, with a disk that no VM has or a new empty one",
		act(func(ctx context.Context, p *Project, o *order) error {
			return p.CreateVM(ctx, VMConfig{Name: o.vm, Zone: o.zone, Address: o.address}, o.disk)
		})},
	{"vm/delete", "vm [with-disk]", "delete it; its disk stays, and belongs to nobody",
		act(func(ctx context.Context, p *Project, o *order) error { return p.DeleteVM(ctx, o.vm, o.withDisk) })},
	{"vm/start", "vm", "power it on: the same instance id, a new boot id", toVM((*Project).StartVM)},
	{"vm/kill", "vm", "cut its power; what was written is kept", toVM((*Project).KillVM)},
	{"vm/stop", "vm", "stop it in order, as GCE does: SIGTERM, 120 s, or 30 s of a Spot VM", toVM((*Project).StopVM)},
	{"vm/freeze", "vm", "stall it wholly and in silence, as when its host hangs", toVM((*Project).FreezeVM)},
	{"vm/thaw", "vm", "let it go on", toVM((*Project).ThawVM)},
	{"vm/recreate", "vm [wipe address leave-running]",
		"delete it and create it again: a new instance id, a fresh boot disk",
		act(func(ctx context.Context, p *Project, o *order) error {
			r := Recreation{Wipe: o.wipe, Address: o.address, NewAddress: o.newAddress, LeaveRunning: o.leaveRunning}
			return p.RecreateVM(ctx, o.vm, r)
		})},
	{"vm/host-error", "vm [disk hide-record]", "start the same instance on another host; its former boot runs on as " +
		"NAME.1, off the network",
		act(func(ctx context.Context, p *Project, o *order) error {
			return p.HostError(ctx, o.vm, HostError{Disk: o.disk, HideRecord: o.hideRecord})
		})},
	{"vm/scopes", "vm scopes", "give the tokens of one that is off these access scopes, and no others",
		act(func(_ context.Context, p *Project, o *order) error { return p.SetScopes(o.vm, o.scopes) })},
	{"vm/maintenance", "vm event", "announce a host maintenance in its metadata",
		act(func(_ context.Context, p *Project, o *order) error { return p.SetMaintenance(o.vm, o.event) })},
	{"attribute/set", "key value [vm]", "set an instance attribute, of all VMs where none is named; agents that " +
		"watch it wake",
		act(func(_ context.Context, p *Project, o *order) error { return p.SetAttribute(o.vm, o.key, &o.value) })},
	{"attribute/remove", "key [vm]", "remove it",
		act(func(_ context.Context, p *Project, o *order) error { return p.SetAttribute(o.vm, o.key, nil) })},
	{"net/cut", "vm", "take it off the network; its metadata server still answers", toVM((*Project).Cut)},
	{"net/partition", "vm to [one-way]", "drop what two VMs send to each other",
		act(func(ctx context.Context, p *Project, o *order) error { return p.Partition(ctx, o.vm, o.to, o.oneWay) })},
	{"net/heal", "[vm]", "undo all cuts and partitions, or those of one VM", toVM((*Project).Heal)},
	{"net/limit", "vm [bandwidth delay]", "limit its link in each direction; with neither, no more (a delay needs " +
		"netem in the kernel)",
		act(func(ctx context.Context, p *Project, o *order) error {
			return p.SetLink(ctx, o.vm, network.Link{Bandwidth: o.bandwidth, Delay: o.delay})
		})},
	{"net/reset", "vm to", "break the TCP connections between two VMs; new ones work",
		func(ctx context.Context, p *Project, o *order) (string, error) {
			n, err := p.ResetConnections(ctx, o.vm, o.to)
			return fmt.Sprintf("%d connections are broken", n), err
		}},
	{"disk/fill", "vm [leave]", "take all space of its disk, also over reboots: writes end in ENOSPC",
		act(func(ctx context.Context, p *Project, o *order) error { return p.FillDisk(ctx, o.vm, o.leave) })},
	{"disk/free", "vm", "end a fill", toVM((*Project).FreeDisk)},
	{"disk/grow", "vm capacity", "make it larger, also while it is in use; its file system grows at the next boot",
		act(func(ctx context.Context, p *Project, o *order) error { return p.GrowDisk(ctx, o.vm, o.capacity) })},
	{"disk/freeze", "vm for", "make all writes to its disk wait (fsfreeze), " + MaxStall.String() + " at most",
		act(func(_ context.Context, p *Project, o *order) error { return p.FreezeDisk(o.vm, o.limit) })},
	{"disk/thaw", "vm", "end a freeze",
		act(func(_ context.Context, p *Project, o *order) error { return p.ThawDisk(o.vm) })},
	{"disk/tear", "vm", "cut its power and lose what it had not synced", toVM((*Project).TearDisk)},
	{"disk/tear-by-copy", "vm", "cut its power and leave what was written at one instant, also in the middle of a " +
		"sync; it needs up --reflink",
		toVM((*Project).TearDiskByCopy)},
	{"disk/snapshot", "vm snapshot", "keep its disk as it is now",
		act(func(_ context.Context, p *Project, o *order) error { return p.SnapshotDisk(o.vm, o.snapshot) })},
	{"disk/restore", "vm snapshot [same-id]", "give it, while it is off, a disk made of a snapshot: another one, or " +
		"the same rolled back",
		act(func(_ context.Context, p *Project, o *order) error { return p.RestoreDisk(o.vm, o.snapshot, o.sameID) })},
	{"disk/delete-snapshot", "snapshot", "delete a snapshot",
		act(func(_ context.Context, p *Project, o *order) error { return p.DeleteSnapshot(o.snapshot) })},
	{"disk/clone", "vm to", "give another VM, which is off, a copy of its disk",
		act(func(_ context.Context, p *Project, o *order) error { return p.CloneDisk(o.vm, o.to) })},
	{"disk/swap", "vm to", "exchange the disks of two VMs that are off",
		act(func(_ context.Context, p *Project, o *order) error { return p.SwapDisks(o.vm, o.to) })},
	{"disk/empty", "vm", "make a new file system on its disk, while it is off; the disk's id stays",
		act(func(_ context.Context, p *Project, o *order) error { return p.EmptyDisk(o.vm) })},
	{"disk/delete", "disk zone", "delete a disk that no VM has",
		act(func(_ context.Context, p *Project, o *order) error { return p.DeleteDisk(o.disk, o.zone) })},
	{"disk/corrupt", "vm path [offset bits]", "flip bits in a file of its disk, also while it is in use",
		func(ctx context.Context, p *Project, o *order) (string, error) {
			return p.CorruptDisk(ctx, o.vm, disk.Corruption{Path: o.path, Offset: o.offset, Bits: o.bits})
		}},
	{"disk/truncate", "vm path size", "cut a file of its disk short, also while it is in use",
		func(ctx context.Context, p *Project, o *order) (string, error) {
			return p.TruncateDisk(ctx, o.vm, o.path, o.size)
		}},
	{"fault", "service [vm kind delay vms zone stopped-for detached code call skip times quota for]",
		"make one of Google's services fail, for one VM or for all; without a kind it is well again",
		act(func(_ context.Context, p *Project, o *order) error {
			f := fault.Fault{Who: o.vm, Kind: o.kind, Delay: o.delay, VMs: o.vms, Zone: o.zone,
				Detached: o.detached, Code: o.code, Call: o.call, Skip: o.skip, Times: o.times,
				Quota: o.quota, For: o.limit}
			if o.stoppedFor != 0 {
				f.LastStop = time.Now().Add(-o.stoppedFor)
			}
			return p.SetFault(fault.Service(o.service), f)
		})},
	{"fault/names", "[vm kind]", "make the name server " + NameServerSilent +
		"; without a kind it says as ever, at once, that there is none",
		act(func(ctx context.Context, p *Project, o *order) error { return p.SetNameServerFault(ctx, o.vm, o.kind) })},
}

// act is a verb that says nothing; toVM is one that needs to know the VM alone.
func act(do func(context.Context, *Project, *order) error) func(context.Context, *Project, *order) (string, error) {
	return func(ctx context.Context, p *Project, o *order) (string, error) { return "", do(ctx, p, o) }
}

func toVM(do func(*Project, context.Context, string) error) func(context.Context, *Project, *order) (string, error) {
	return func(ctx context.Context, p *Project, o *order) (string, error) { return "", do(p, ctx, o.vm) }
}

// Verbs says what Client.Do knows, for people.
func Verbs() string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for _, v := range verbs {
		fmt.Fprintf(t, "  %s %s\t%s\n", v.name, v.fields, v.does)
	}
	fmt.Fprintln(t)
	(&order{}).fields().VisitAll(func(f *flag.Flag) { fmt.Fprintf(t, "  %s\t%s\n", f.Name, f.Usage) })
	_ = t.Flush() // a Builder takes all
	return text.String()
}
