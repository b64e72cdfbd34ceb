package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/api/storage/v1"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// Reports keeps the replicas' reports and events in the bucket of the record, in a folder next to the record's. Nothing
// decides by them: a Store neither lists nor reads that folder, and Reports reaches nothing else. Its methods may be
// called concurrently.
//
// A report is overwritten, and batches of events are deleted after EventsKept. So whoever runs an agent may overwrite
// and delete here, and the right to do so does not reach the record.
type Reports struct{ gcs *gcs }

// EventsKept is how long events are kept. A lifecycle rule of the bucket may delete them earlier.
const EventsKept = 30 * 24 * time.Hour

// reportsPace is for writers who come again with something newer, and for people who wait.
var reportsPace = pace{tries: 2, timeout: 4 * time.Second, first: 200 * time.Millisecond}

// OpenReports opens the reports of a cluster next to its record, as Open does. It asks no server.
func OpenReports(recordURL, cluster string, client *http.Client) (*Reports, error) {
	if client == nil {
		client = http.DefaultClient
	}
	g, err := openFolder(recordURL, cluster, report.Folder(cluster), client)
	if err != nil {
		return nil, err
	}
	g.pace = reportsPace
	return &Reports{g}, nil
}

// String names the place of the reports, for messages.
func (r *Reports) String() string { return r.gcs.where("") }

// WriteReport overwrites the report of its replica.
func (r *Reports) WriteReport(ctx context.Context, v report.Report) error {
	data, err := json.Marshal(v)
	if err == nil {
		err = r.gcs.overwrite(ctx, report.Key(v.Place), data)
	}
	return r.fault("write", report.Key(v.Place), err)
}

// WriteBatch writes a batch of events once. One that is there already was written by an earlier try.
func (r *Reports) WriteBatch(ctx context.Context, b report.Batch) error {
	data, err := json.Marshal(b)
	if err == nil {
		err = r.gcs.create(ctx, b.Key(), data)
	}
	if errors.Is(err, errExists) {
		return nil
	}
	return r.fault("write", b.Key(), err)
}

// All reads the reports of all replicas. What cannot be decoded is left out: a newer version may have written it.
func (r *Reports) All(ctx context.Context) ([]report.Sighting, error) {
	objects, err := r.list(ctx, report.ReplicasFolder, "", "")
	if err != nil {
		return nil, err
	}
	return readEach(ctx, objects, func(ctx context.Context, o aged) (*report.Sighting, error) {
		place, ok := report.PlaceOf(o.key)
		if !ok {
			return nil, nil
		}
		return r.sighting(ctx, place, o)
	})
}

// readEach reads several objects at once, and returns what it found in their order. nil: the object is none.
func readEach[T any](ctx context.Context, objects []aged, read func(context.Context, aged) (*T, error)) ([]T, error) {
	found := make([]*T, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for n, o := range objects {
		group.Go(func() (err error) {
			found[n], err = read(ctx, o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := []T{}
	for _, v := range found {
		if v != nil {
			out = append(out, *v)
		}
	}
	return out, nil
}

// sighting reads one report of a listing; nil: it is none.
func (r *Reports) sighting(ctx context.Context, place replica.Place, o aged) (*report.Sighting, error) {
	data, err := r.gcs.read(ctx, o.key)
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, r.fault("read", o.key, err)
	}
	s := report.Sighting{Age: o.age, Written: o.written}
	if json.Unmarshal(data, &s.Report) != nil || s.Place != place {
		return nil, nil
	}
	return &s, nil
}

// Of reads the report of one replica; nil: it has none.
func (r *Reports) Of(ctx context.Context, place replica.Place) (*report.Sighting, error) {
	objects, err := r.list(ctx, report.Key(place), "", "")
	if err != nil || len(objects) != 1 {
		return nil, err
	}
	return r.sighting(ctx, place, objects[0])
}

// Events reads the batches that were begun at a time or later, by the writers' clocks, in the order of their names.
func (r *Reports) Events(ctx context.Context, since time.Time) ([]report.Batch, error) {
	objects, err := r.list(ctx, report.EventsFolder, report.EventsFrom(since), "")
	if err != nil {
		return nil, err
	}
	return readEach(ctx, objects, r.batch)
}

// batch reads one batch of a listing; nil: it is none.
func (r *Reports) batch(ctx context.Context, o aged) (*report.Batch, error) {
	if !report.IsEvents(o.key) {
		return nil, nil
	}
	data, err := r.gcs.read(ctx, o.key)
	switch {
	case errors.Is(err, errAbsent): // deleted since it was listed
		return nil, nil
	case err != nil:
		return nil, r.fault("read", o.key, err)
	}
	var b report.Batch
	if json.Unmarshal(data, &b) != nil || !b.Place.Valid() {
		return nil, nil
	}
	return &b, nil
}

// mostDeleted is how many batches one call deletes: what is left is for the next. Each replica calls it four times a
// day, and writes at most 5,000 events a day.
const mostDeleted = 2000

// DropOldEvents deletes batches that are older than EventsKept by the store's clock, and says how many.
func (r *Reports) DropOldEvents(ctx context.Context) (int, error) {
	// By their names first, with a day for clocks that are wrong, so that one page says that there is nothing to do.
	objects, err := r.list(ctx, report.EventsFolder, "", report.EventsFrom(time.Now().Add(24*time.Hour-EventsKept)))
	if err != nil {
		return 0, err
	}
	objects = slices.DeleteFunc(objects, func(o aged) bool { return o.age < EventsKept || !report.IsEvents(o.key) })
	var deleted atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, o := range objects[:min(len(objects), mostDeleted)] {
		group.Go(func() error {
			err := r.gcs.deleteEvents(ctx, o.key)
			if err == nil {
				deleted.Add(1)
			}
			return r.fault("delete", o.key, err)
		})
	}
	err = group.Wait()
	return int(deleted.Load()), err
}

// deleteEvents removes a batch of events, and refuses any other object.
func (g *gcs) deleteEvents(ctx context.Context, key string) error {
	if !report.IsEvents(key) {
		return fmt.Errorf("delete %s: only events are deleted here", g.where(key))
	}
	return g.remove(ctx, key)
}

// aged is an object of a listing, and when it was written, by the store's clock.
type aged struct {
	key     string
	age     time.Duration
	written time.Time
}

// list is what lies below a prefix, from one name on and before another, with each object's age by the store's clock:
// its time against the Date of the same answer.
func (r *Reports) list(ctx context.Context, below, from, before string) (out []aged, err error) {
	err = r.gcs.eachPage(ctx, below, from, before, func(page *storage.Objects) error {
		now, err := http.ParseTime(page.Header.Get("Date"))
		if err != nil {
			return fmt.Errorf("the answer does not say what time it is: %w", err)
		}
		for _, o := range page.Items {
			e, err := r.gcs.entry(o)
			if err != nil {
				return err
			}
			// A Date has whole seconds.
			out = append(out, aged{e.key, max(0, now.Sub(e.written)), e.written})
		}
		return nil
	})
	if err != nil {
		return nil, r.fault("list", below, err)
	}
	return out, nil
}

// fault is an error with what was being done.
func (r *Reports) fault(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	return record.AtFault(fmt.Errorf("%s %s: %w", doing, r.gcs.where(key), err))
}
