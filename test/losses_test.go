package test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// lossKind is a way in which a VM is lost and comes back.
type lossKind struct {
	name string
	// weight is how often it is taken, next to the others'.
	weight int
	// disk: what was on the data disk is lost.
	disk bool
	// lose takes the VM away, back brings it back; hold is the longest time between them.
	lose, back func(ctx context.Context, c *cluster, vm, other string) error
	hold       time.Duration
}

func nothing(context.Context, *cluster, string, string) error { return nil }

func recreated(r localgce.Recreation, moved bool) func(context.Context, *cluster, string, string) error {
	return func(ctx context.Context, c *cluster, vm, _ string) error {
		r := r
		if moved {
			r.Address = c.nextFree()
		}
		return c.RecreateVM(ctx, vm, r)
	}
}

func torn(ctx context.Context, c *cluster, vm, _ string) error    { return c.TearDisk(ctx, vm) }
func copied(ctx context.Context, c *cluster, vm, _ string) error  { return c.TearDiskByCopy(ctx, vm) }
func killed(ctx context.Context, c *cluster, vm, _ string) error  { return c.KillVM(ctx, vm) }
func stopped(ctx context.Context, c *cluster, vm, _ string) error { return c.StopVM(ctx, vm) }
func started(ctx context.Context, c *cluster, vm, _ string) error { return c.StartVM(ctx, vm) }
func frozen(ctx context.Context, c *cluster, vm, _ string) error  { return c.FreezeVM(ctx, vm) }
func thawed(ctx context.Context, c *cluster, vm, _ string) error  { return c.ThawVM(ctx, vm) }
func cut(ctx context.Context, c *cluster, vm, _ string) error     { return c.Cut(ctx, vm) }
func healed(ctx context.Context, c *cluster, vm, _ string) error  { return c.Heal(ctx, vm) }

func parted(oneWay bool) func(context.Context, *cluster, string, string) error {
	return func(ctx context.Context, c *cluster, vm, other string) error {
		return c.Partition(ctx, vm, other, oneWay)
	}
}

// lossKinds are all that chaos does to a VM.
var lossKinds = []lossKind{
	{name: "power cut, started again", weight: 4, lose: killed, back: started, hold: 4 * time.Second},
	{name: "power cut, unsynced data lost, started again", weight: 2, lose: torn, back: started, hold: 4 * time.Second},
	{name: "power cut in the middle of what was written, started again", weight: 3, lose: copied, back: started,
		hold: 4 * time.Second},
	{name: "stopped in order, started again", weight: 1, lose: stopped, back: started, hold: 2 * time.Second},
	{name: "power cut, recreated, disk kept", weight: 3, lose: killed, back: recreated(localgce.Recreation{}, false),
		hold: 4 * time.Second},
	{name: "recreated at once, disk kept, new address", weight: 2, lose: nothing, back: recreated(localgce.Recreation{},
		true)},
	{name: "power cut, recreated, disk lost", weight: 4, disk: true, lose: killed,
		back: recreated(localgce.Recreation{Wipe: true}, false), hold: 4 * time.Second},
	{name: "recreated at once, disk lost, new address", weight: 3, disk: true, lose: nothing,
		back: recreated(localgce.Recreation{Wipe: true}, true)},
	{name: "frozen", weight: 3, lose: frozen, back: thawed, hold: 8 * time.Second},
	{name: "cut off", weight: 2, lose: cut, back: healed, hold: 8 * time.Second},
	{name: "partitioned from another", weight: 2, lose: parted(false), back: healed, hold: 8 * time.Second},
	{name: "not heard by another", weight: 1, lose: parted(true), back: healed, hold: 8 * time.Second},
}

// pickLoss is a random kind; of those that lose the disk only where it may be lost.
func pickLoss(r *rand.Rand, diskToo bool) lossKind {
	for {
		total := 0
		for _, k := range lossKinds {
			total += k.weight
		}
		n := r.IntN(total)
		for _, k := range lossKinds {
			if n -= k.weight; n < 0 {
				if k.disk && !diskToo {
					break
				}
				return k
			}
		}
	}
}
