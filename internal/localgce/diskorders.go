package localgce

import (
	"context"
	"net/http"
	"time"
)

// diskOrder is the part of an order that is about disks.
type diskOrder struct {
	Name     string        `json:"name,omitempty"`
	Zone     string        `json:"zone,omitempty"`
	Snapshot string        `json:"snapshot,omitempty"`
	Bytes    int64         `json:"bytes,omitempty"`
	Limit    time.Duration `json:"limit,omitempty"`
	SameID   bool          `json:"sameID,omitempty"`
	Delete   bool          `json:"delete,omitempty"`
	Corrupt  Corruption    `json:"corrupt,omitzero"`
}

// routeDisks serves the orders about disks.
func (p *Project) routeDisks(mux *http.ServeMux) {
	for verb, do := range map[string]func(context.Context, order) error{
		"disk/fill":            func(ctx context.Context, o order) error { return p.FillDisk(ctx, o.VM, o.Disk.Bytes) },
		"disk/free":            func(ctx context.Context, o order) error { return p.FreeDisk(ctx, o.VM) },
		"disk/freeze":          func(_ context.Context, o order) error { return p.FreezeDisk(o.VM, o.Disk.Limit) },
		"disk/thaw":            func(_ context.Context, o order) error { return p.ThawDisk(o.VM) },
		"disk/tear":            func(ctx context.Context, o order) error { return p.TearDisk(ctx, o.VM) },
		"disk/tear-by-copy":    func(ctx context.Context, o order) error { return p.TearDiskByCopy(ctx, o.VM) },
		"disk/snapshot":        func(_ context.Context, o order) error { return p.SnapshotDisk(o.VM, o.Disk.Snapshot) },
		"disk/restore":         func(_ context.Context, o order) error { return p.RestoreDisk(o.VM, o.Disk.Snapshot, o.Disk.SameID) },
		"disk/delete-snapshot": func(_ context.Context, o order) error { return p.DeleteSnapshot(o.Disk.Snapshot) },
		"disk/clone":           func(_ context.Context, o order) error { return p.CloneDisk(o.VM, o.Other) },
		"disk/swap":            func(_ context.Context, o order) error { return p.SwapDisks(o.VM, o.Other) },
		"disk/empty":           func(_ context.Context, o order) error { return p.EmptyDisk(o.VM) },
		"disk/delete":          func(_ context.Context, o order) error { return p.DeleteDisk(o.Disk.Name, o.Disk.Zone) },
	} {
		route(mux, verb, func(ctx context.Context, o order) (string, error) { return "", do(ctx, o) })
	}
	route(mux, "disk/corrupt", func(ctx context.Context, o order) (string, error) { return p.CorruptDisk(ctx, o.VM, o.Disk.Corrupt) })
	route(mux, "disk/truncate", func(ctx context.Context, o order) (string, error) {
		return p.TruncateDisk(ctx, o.VM, o.Disk.Corrupt.Path, o.Disk.Bytes)
	})
}

// FillDisk is Project.FillDisk.
func (c *Client) FillDisk(ctx context.Context, name string, leave int64) error {
	return c.order(ctx, "disk/fill", order{VM: name, Disk: diskOrder{Bytes: leave}})
}

// FreeDisk is Project.FreeDisk.
func (c *Client) FreeDisk(ctx context.Context, name string) error {
	return c.order(ctx, "disk/free", order{VM: name})
}

// FreezeDisk is Project.FreezeDisk.
func (c *Client) FreezeDisk(ctx context.Context, name string, limit time.Duration) error {
	return c.order(ctx, "disk/freeze", order{VM: name, Disk: diskOrder{Limit: limit}})
}

// ThawDisk is Project.ThawDisk.
func (c *Client) ThawDisk(ctx context.Context, name string) error {
	return c.order(ctx, "disk/thaw", order{VM: name})
}

// TearDisk is Project.TearDisk.
func (c *Client) TearDisk(ctx context.Context, name string) error {
	return c.order(ctx, "disk/tear", order{VM: name})
}

// TearDiskByCopy is Project.TearDiskByCopy.
func (c *Client) TearDiskByCopy(ctx context.Context, name string) error {
	return c.order(ctx, "disk/tear-by-copy", order{VM: name})
}

// SnapshotDisk is Project.SnapshotDisk.
func (c *Client) SnapshotDisk(ctx context.Context, name, snap string) error {
	return c.order(ctx, "disk/snapshot", order{VM: name, Disk: diskOrder{Snapshot: snap}})
}

// RestoreDisk is Project.RestoreDisk.
func (c *Client) RestoreDisk(ctx context.Context, name, snap string, sameID bool) error {
	return c.order(ctx, "disk/restore", order{VM: name, Disk: diskOrder{Snapshot: snap, SameID: sameID}})
}

// DeleteSnapshot is Project.DeleteSnapshot.
func (c *Client) DeleteSnapshot(ctx context.Context, snap string) error {
	return c.order(ctx, "disk/delete-snapshot", order{Disk: diskOrder{Snapshot: snap}})
}

// CloneDisk is Project.CloneDisk.
func (c *Client) CloneDisk(ctx context.Context, from, to string) error {
	return c.order(ctx, "disk/clone", order{VM: from, Other: to})
}

// SwapDisks is Project.SwapDisks.
func (c *Client) SwapDisks(ctx context.Context, a, b string) error {
	return c.order(ctx, "disk/swap", order{VM: a, Other: b})
}

// EmptyDisk is Project.EmptyDisk.
func (c *Client) EmptyDisk(ctx context.Context, name string) error {
	return c.order(ctx, "disk/empty", order{VM: name})
}

// DeleteDisk is Project.DeleteDisk.
func (c *Client) DeleteDisk(ctx context.Context, disk, zone string) error {
	return c.order(ctx, "disk/delete", order{Disk: diskOrder{Name: disk, Zone: zone}})
}

// CorruptDisk is Project.CorruptDisk.
func (c *Client) CorruptDisk(ctx context.Context, name string, what Corruption) (path string, err error) {
	return c.ask(ctx, "disk/corrupt", order{VM: name, Disk: diskOrder{Corrupt: what}})
}

// TruncateDisk is Project.TruncateDisk.
func (c *Client) TruncateDisk(ctx context.Context, name, pattern string, size int64) (path string, err error) {
	return c.ask(ctx, "disk/truncate", order{VM: name, Disk: diskOrder{Corrupt: Corruption{Path: pattern}, Bytes: size}})
}
