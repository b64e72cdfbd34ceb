package gce

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/replica"
)

// Disks lists every disk that carries the cluster's label, attached or not. It is complete or an error, as VMs.
func (c *Compute) Disks(ctx context.Context) ([]replica.Disk, error) {
	var out []replica.Disk
	_, err := c.pages(ctx, "the disks of cluster "+c.cluster, func(ctx context.Context, api *compute.Service,
		token string) (page, error) {
		list, err := api.Disks.AggregatedList(c.project).Context(ctx).Filter(c.labelFilter()).PageToken(token).
			Do(partialSuccess)
		if err != nil {
			return page{}, err
		}
		found, problems, err := c.disksOf(list)
		return page{next: list.NextPageToken, problems: problems, take: func() { out = append(out, found...) }}, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Compute) disksOf(list *compute.DiskAggregatedList) ([]replica.Disk, []string, error) {
	var out []replica.Disk
	problems, err := c.eachDisk(list, func(scope string, d *compute.Disk) error {
		if !c.labelled(d.Labels) {
			return nil
		}
		one, err := diskOf(lastPart(scope), d)
		out = append(out, one)
		return err
	})
	return out, problems, err
}

// diskOf translates one disk. A user that cannot be read is an error: the disk would look as if that VM had let go of
// it.
func diskOf(zone string, d *compute.Disk) (replica.Disk, error) {
	if d.Id == 0 || d.Name == "" {
		return replica.Disk{}, finalError{fmt.Errorf("found a disk %q in %s without name or id", d.Name, zone)}
	}
	out := replica.Disk{ID: strconv.FormatUint(d.Id, 10), Mode: d.AccessMode}
	for _, user := range d.Users { // …/zones/ZONE/instances/NAME
		before, name, ok := strings.Cut(user, "/instances/")
		if !ok || name == "" || strings.Contains(name, "/") {
			return replica.Disk{}, finalError{fmt.Errorf("found user %q at disk %s in %s", shorten(user), d.Name, zone)}
		}
		out.Users = append(out.Users, replica.Place{Zone: lastPart(before), Name: name})
	}
	return out, nil
}

// eachDisk goes through one page, and names what makes it incomplete.
func (c *Compute) eachDisk(list *compute.DiskAggregatedList, take func(scope string, d *compute.Disk) error) (
	problems []string, err error) {
	if err := ofKind(list.Kind, "compute#diskAggregatedList"); err != nil {
		return nil, err
	}
	missing := holes{region: c.region}
	missing.unreachable(list.Unreachables)
	for _, scope := range sortedKeys(list.Items) {
		items := list.Items[scope]
		if w := items.Warning; w != nil {
			missing.inScope(scope, w.Code, w.Message)
		}
		for _, d := range items.Disks {
			if err := take(scope, d); err != nil {
				return nil, err
			}
		}
	}
	if w := list.Warning; w != nil {
		missing.inAll(w.Code, w.Message)
	}
	return missing.problems, nil
}

// Disk finds a disk of the project by its id, whatever it is labelled. found is false only where a complete answer
// lacks it; whether the API filters by id as expected a caller finds out with an id that it knows to exist.
func (c *Compute) Disk(ctx context.Context, id string) (disk replica.Disk, found bool, err error) {
	if n, err := strconv.ParseUint(id, 10, 64); err != nil || n == 0 {
		return replica.Disk{}, false, fmt.Errorf("find the disk with id %q: a disk's id is a number", id)
	}
	_, err = c.pages(ctx, "the disk with id "+id, func(ctx context.Context, api *compute.Service, token string) (page,
		error) {
		list, err := api.Disks.AggregatedList(c.project).Context(ctx).Filter("id=" + id).PageToken(token).
			Do(partialSuccess)
		if err != nil {
			return page{}, err
		}
		var here *replica.Disk
		problems, err := c.eachDisk(list, func(scope string, d *compute.Disk) error {
			if strconv.FormatUint(d.Id, 10) != id {
				return nil
			}
			one, err := diskOf(lastPart(scope), d)
			here = &one
			return err
		})
		return page{next: list.NextPageToken, problems: problems, take: func() {
			if here != nil {
				disk, found = *here, true
			}
		}}, err
	})
	if err != nil {
		return replica.Disk{}, false, err
	}
	return disk, found, nil
}

// Attached reads a disk by the URL under which its VM names it: a zone's, or a region's, whose disks have other
// resources. A disk that does not exist is an error: its VM has just said that it does.
func (c *Compute) Attached(ctx context.Context, a replica.AttachedDisk) (disk replica.Disk, err error) {
	get, where, err := c.getter(a.Source)
	if err != nil {
		return replica.Disk{}, err
	}
	err = c.ask(ctx, fmt.Sprintf("disk %s in %s", a.Name, where),
		func(ctx context.Context, api *compute.Service) error {
			d, err := get(ctx, api)
			if err != nil {
				return err
			}
			if d.Name != a.Name {
				return finalError{fmt.Errorf("found a disk %q with id %d", d.Name, d.Id)}
			}
			disk, err = diskOf(where, d)
			return err
		})
	if err != nil {
		return replica.Disk{}, err
	}
	return disk, nil
}

// diskGet is the question for one disk.
type diskGet func(context.Context, *compute.Service) (*compute.Disk, error)

// getter is the question that a disk's URL leads to. It ends with /zones/ZONE/disks/NAME or /regions/REGION/disks/NAME.
func (c *Compute) getter(source string) (get diskGet, where string, err error) {
	parts := strings.Split(source, "/")
	n := len(parts)
	if n < 4 || parts[n-2] != "disks" || parts[n-1] == "" || parts[n-3] == "" {
		return nil, "", fmt.Errorf("find the disk at %q: the URL ends with /zones/ZONE/disks/NAME "+
			"or /regions/REGION/disks/NAME", shorten(source))
	}
	where, name := parts[n-3], parts[n-1]
	switch parts[n-4] {
	case "zones":
		return func(ctx context.Context, api *compute.Service) (*compute.Disk, error) {
			return api.Disks.Get(c.project, where, name).Context(ctx).Do()
		}, where, nil
	case "regions":
		return func(ctx context.Context, api *compute.Service) (*compute.Disk, error) {
			return api.RegionDisks.Get(c.project, where, name).Context(ctx).Do()
		}, where, nil
	}
	return nil, "", fmt.Errorf("find the disk at %q: found %q; zones or regions is allowed", shorten(source),
		parts[n-4])
}

// isMissing: the API says of this very resource that it does not exist.
func isMissing(err error, kind, name string) bool {
	var status *googleapi.Error
	return errors.As(err, &status) && status.Code == http.StatusNotFound &&
		strings.Contains(status.Message, "/"+kind+"/"+name+"'")
}
