package bucket

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// readers is how many objects are read at once: a record of a thousand objects is read in seconds at 50 ms each, and a
// machine that just booted is not flooded.
const readers = 16

// View reads the whole record: the state at one moment between the call and its return, except that marks may be newer.
// It is complete or an error that names the object that could not be read or understood. An object is read the first
// time only, and a mark again once it was overwritten: a View of an unchanged record costs one listing. The marks of
// dead members stay for ever, so a read of each would be thousands. Objects that are not the record's are passed over;
// Check names them. The caller may keep the View but must not change what its slices and pointers hold.
func (s *Store) View(ctx context.Context) (record.View, error) {
	r, err := s.Remains(ctx)
	if err == nil && len(r.Orphans) > 0 {
		err = record.AtFault(fmt.Errorf("read record: %s: %w", s, r.Orphans[0].Lost()))
	}
	if err != nil {
		return record.View{}, err
	}
	return r.View, nil
}

// Remains is View for a record that is known to be damaged, and it is as strict but for the orphans. Only what brings
// lost objects back may use it: nothing may be decided from it.
func (s *Store) Remains(ctx context.Context) (record.Remains, error) {
	entries, err := s.stableList(ctx)
	if err != nil {
		return record.Remains{}, record.AtFault(fmt.Errorf("read record: %w", err))
	}
	values, err := s.load(ctx, entries)
	if err != nil {
		return record.Remains{}, record.AtFault(fmt.Errorf("read record: %w", err))
	}
	return assemble(entries, values), nil
}

// load returns the decoded objects by key, reading those that the cache lacks. What was read before one failed, or time
// was up, is kept: the first View of a large record then comes to its end in several tries.
func (s *Store) load(ctx context.Context, entries []entry) (map[string]any, error) {
	s.mu.Lock()
	known := maps.Clone(s.cache)
	s.mu.Unlock()
	values := make([]any, len(entries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for n, e := range entries {
		k := record.ParseKey(e.key)
		switch k.Kind {
		case record.UnknownObject, record.ProbeObject, record.SealedObject, record.SnapshotObject,
			record.SnapshotInfoObject:
			continue // the name says all that a View holds of it
		case record.MisplacedObject:
			return nil, fmt.Errorf("%s is an object where the record has a folder: remove it", s.driver.where(e.key))
		}
		if c, ok := known[e.key]; ok && c.stamp == e.stamp {
			values[n] = c.value
			continue
		}
		group.Go(func() (err error) {
			values[n], err = s.readObject(ctx, e.key, k)
			return err
		})
	}
	err := group.Wait()
	read := s.remember(entries, values)
	if err != nil {
		return nil, err
	}
	return read, nil
}

// readObject reads and decodes an object of the listing. That it is not there any more is a failure like another.
func (s *Store) readObject(ctx context.Context, key string, k record.Object) (any, error) {
	data, err := s.driver.read(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s, which the listing has: %w", s.driver.where(key), err)
	}
	v, err := record.DecodeAny(k, data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", s.driver.where(key), err)
	}
	return v, nil
}

// remember replaces the cache by what this listing has, so that an object that is gone is forgotten.
func (s *Store) remember(entries []entry, values []any) map[string]any {
	cache := make(map[string]cached, len(entries))
	out := make(map[string]any, len(entries))
	for n, e := range entries {
		if values[n] == nil {
			continue
		}
		out[e.key] = values[n]
		cache[e.key] = cached{e.stamp, values[n]}
	}
	s.mu.Lock()
	s.cache = cache
	s.mu.Unlock()
	return out
}

// assemble builds the View from the names of all objects and the contents of those that have one.
func assemble(entries []entry, values map[string]any) record.Remains {
	a := assembly{
		view: record.View{Replicas: map[replica.Place][]record.Incarnation{},
			Marks: map[record.MemberID]record.Mark{}},
		epochs: map[uint64]*record.Epoch{},
		orders: map[uint64]*record.Order{},
		places: map[replica.Place]map[uint64]*record.Incarnation{},
	}
	for _, e := range entries {
		k := record.ParseKey(e.key)
		switch k.Kind {
		case record.SealedObject:
			a.view.Bundle = max(a.view.Bundle, k.Number)
		case record.SnapshotObject, record.SnapshotInfoObject:
			if !slices.Contains(a.view.Snapshots, k.Epoch) {
				a.view.Snapshots = append(a.view.Snapshots, k.Epoch)
			}
		case record.StartedObject, record.DiskObject, record.DoneObject, record.AcceptedObject,
			record.VerdictObject, record.VMStopObject:
			// the object that they complete comes first
		case record.MarkObject:
			m, _ := values[e.key].(record.Mark)
			m.Written = e.written
			a.add(k, m)
		case record.IncarnationObject:
			i, _ := values[e.key].(record.Incarnation)
			i.Written = e.written
			a.add(k, i)
		default:
			a.add(k, values[e.key])
		}
	}
	for _, e := range entries {
		a.complete(e, values[e.key])
	}
	a.view.Taken = taken(entries)
	return record.Remains{View: a.finish(), Orphans: a.orphans}
}

// assembly is a View in the making.
type assembly struct {
	view   record.View
	epochs map[uint64]*record.Epoch
	orders map[uint64]*record.Order
	places map[replica.Place]map[uint64]*record.Incarnation
	// orphans are the confirmations without an incarnation.
	orphans []record.Orphan
}

// add takes an object that stands by itself.
func (a *assembly) add(k record.Object, value any) {
	switch v := value.(type) {
	case record.Inception:
		a.view.Inception = &v
	case record.Claim:
		a.epoch(k).Claim = &v
	case record.Outcome:
		a.epoch(k).Outcome = &v
	case record.Closed:
		a.epoch(k).Closed = &v
	case record.Stopped:
		a.epoch(k).Stopped = append(a.epoch(k).Stopped, v)
	case record.Mark:
		a.view.Marks[v.MemberID] = v
	case record.Order:
		a.orders[v.Number] = &v
	case record.Incarnation:
		if a.places[v.Place] == nil {
			a.places[v.Place] = map[uint64]*record.Incarnation{}
		}
		a.places[v.Place][v.Number] = &v
	}
}

// complete takes an object that belongs to another one.
func (a *assembly) complete(e entry, value any) {
	k := record.ParseKey(e.key)
	switch v := value.(type) {
	case record.Started:
		if i := a.places[k.Place][k.Number]; i != nil {
			i.Started = &v
		} else {
			a.orphans = append(a.orphans, record.Orphan{Place: k.Place, Number: k.Number, Started: v})
		}
	case record.Done:
		if o := a.orders[k.Number]; o != nil {
			o.Done = &v
		}
	case record.Accepted:
		if o := a.orders[k.Number]; o != nil {
			o.Accepted = &v
		}
	case record.Verdict:
		if o := a.orders[k.Number]; o != nil {
			o.Verdict = &v
		}
	case record.VMStop:
		if o := a.orders[k.Number]; o != nil {
			if o.VMStops == nil {
				o.VMStops = map[string]record.VMStop{}
			}
			v.Written = e.written
			o.VMStops[v.InstanceID] = v
		}
	case record.DataDisk:
		if i := a.places[k.Place][k.Number]; i != nil && i.DiskID == "" {
			i.DiskID = v.DiskID
		}
	}
}

// epoch is the epoch of a key, which exists from its first object on, claim or not. That nobody has stopped in it is an
// empty list in JSON, too.
func (a *assembly) epoch(k record.Object) *record.Epoch {
	if a.epochs[k.Epoch] == nil {
		a.epochs[k.Epoch] = &record.Epoch{Number: k.Epoch, Stopped: []record.Stopped{}}
	}
	return a.epochs[k.Epoch]
}

// finish sorts all by number.
func (a *assembly) finish() record.View {
	for _, n := range slices.Sorted(maps.Keys(a.epochs)) {
		a.view.Epochs = append(a.view.Epochs, *a.epochs[n])
	}
	for _, n := range slices.Sorted(maps.Keys(a.orders)) {
		a.view.Orders = append(a.view.Orders, *a.orders[n])
	}
	for place, incarnations := range a.places {
		for _, k := range slices.Sorted(maps.Keys(incarnations)) {
			a.view.Replicas[place] = append(a.view.Replicas[place], *incarnations[k])
		}
	}
	slices.Sort(a.view.Snapshots)
	return a.view
}
