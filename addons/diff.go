package addons

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quorate/quorate/addons/plan"
)

// Differences is what a manager with this folder would do now. Its JSON keys are stable.
type Differences struct {
	Folder    string        `json:"folder"`
	Version   plan.Version  `json:"version"`
	Inventory plan.Version  `json:"inventory"`
	Standing  plan.Standing `json:"standing"`
	Faults    []string      `json:"faults"`
	// Objects are those about which something would be done, or should be and cannot.
	Objects []Difference `json:"objects"`
	// Same counts the objects that are as their manifests say.
	Same int `json:"same"`
	// Kept is why leftovers of former sets would not be deleted now.
	Kept string `json:"kept,omitempty"`
}

// Difference is what would be done about one object.
type Difference struct {
	Object string `json:"object"`
	// Action is create, change, refuse, fail, delete, release or stay.
	Action  string        `json:"action"`
	Reason  string        `json:"reason"`
	Source  string        `json:"source,omitempty"`
	Changes []plan.Change `json:"changes,omitempty"`
}

// Diff compares the folder with the cluster, and writes nothing: what would be applied is applied as a dry run.
func Diff(ctx context.Context, kubeconfig, folder string) (Differences, error) {
	s := readSet(readFiles(folder))
	out := Differences{Folder: folder, Version: s.Version, Faults: append([]string{}, s.Faults...),
		Objects: []Difference{}}
	c, err := openCluster(kubeconfig, defaultWrite)
	if err != nil {
		return out, err
	}
	_, inv, err := c.inventory(ctx)
	if err != nil {
		return out, err
	}
	if inv != nil {
		out.Inventory = inv.Version
	}
	if s.Version == "" || len(s.Objects) == 0 {
		return out, nil
	}
	out.Standing = plan.Stand(inv, s.Set)
	live, err := c.observe(ctx, s.Objects)
	if err != nil {
		return out, err
	}
	for _, l := range live {
		if unanswered(l.err) {
			return out, l.err
		}
	}
	var pending []plan.ID
	for _, o := range s.Objects {
		step := plan.Decide(o, live[o.Key()].Live, plan.Known{}, time.Time{})
		d, differs, err := c.difference(ctx, s, step)
		switch {
		case err != nil:
			return out, err
		case !differs:
			out.Same++
			continue
		case d.Action == string(plan.Fail):
			pending = append(pending, o.ID)
		}
		out.Objects = append(out.Objects, d)
	}
	if inv != nil && out.Standing.Writes() {
		return out, c.leftovers(ctx, s, *inv, pending, &out)
	}
	return out, nil
}

// difference is what would be done about one object; false: nothing.
func (c *cluster) difference(ctx context.Context, s set, step plan.Step) (d Difference, differs bool, err error) {
	d = Difference{Object: step.String(), Action: string(step.Action), Reason: step.Reason, Source: step.Source}
	switch step.Action {
	case plan.Leave, plan.Keep:
		return d, false, nil
	case plan.Create, plan.Check:
	default:
		return d, true, nil
	}
	compared, err := c.compare(ctx, marked(s.manifests[step.Key()], step.Origin))
	home := plan.Key{Kind: "Namespace", Name: step.Namespace}
	switch {
	case unanswered(err):
		return d, false, err
	case step.Action == plan.Create && apierrors.IsNotFound(err) && s.manifests[home] != nil:
		// A dry run makes no namespace. A pass makes it in an earlier stage.
		d.Reason = "the set makes its namespace first, so it could not be checked"
	case err != nil:
		d.Action, d.Reason = string(plan.Fail), err.Error()
	case compared.same:
		return d, false, nil
	case compared.before != nil:
		d.Action, d.Changes = "change", plan.Changes(compared.before.Object, compared.after.Object)
	}
	return d, true, nil
}

// leftovers adds what would become of what former sets have made.
func (c *cluster) leftovers(ctx context.Context, s set, inv plan.Inventory, pending []plan.ID,
	out *Differences) error {
	list := plan.Leftovers(inv, s.Set)
	if len(list) == 0 {
		return nil
	}
	// Whoever writes has claimed the inventory by the time it prunes.
	if may, why := plan.MayPrune(s.Set, plan.Whole{Standing: plan.Current}); !may {
		out.Kept = why
		return nil
	}
	for _, id := range list {
		_, live, err := c.leftover(ctx, id)
		if unanswered(err) {
			return err
		}
		if err != nil {
			live.Fault = err.Error()
		}
		fate, why := plan.Judge(id, live)
		if by, held := plan.HeldBack(id, pending); held {
			fate, why = plan.Stay, by.String()+" is not in place"
		}
		if fate != plan.Forget {
			out.Objects = append(out.Objects, Difference{Object: id.String(), Action: string(fate), Reason: why})
		}
	}
	return nil
}
