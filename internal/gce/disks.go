package gce

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/replica"
)

// Disk is a persistent disk of the cluster.
type Disk struct {
	// Zone is where it is; a regional disk's region.
	Zone string
	Name string
	// ID is GCE's numeric id, never given twice: a disk that was made anew under the same name has another.
	ID string
	// Users are the VMs that it is attached to.
	Users []replica.Place
}

// Disks lists every disk that carries the cluster's label, attached or not. It is complete or an error, as Instances.
func (c *Compute) Disks(ctx context.Context, cluster string) ([]Disk, error) {
	var out []Disk
	err := c.pages(ctx, "the disks of cluster "+cluster, func(ctx context.Context, api *compute.Service, token string) (page, error) {
		list, err := api.Disks.AggregatedList(c.project).Context(ctx).Filter(labelFilter(cluster)).PageToken(token).Do()
		if err != nil {
			return page{}, err
		}
		found, problems, err := disksOf(list, cluster)
		return page{next: list.NextPageToken, problems: problems, take: func() { out = append(out, found...) }}, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func disksOf(list *compute.DiskAggregatedList, cluster string) ([]Disk, []string, error) {
	var out []Disk
	problems, err := eachDisk(list, func(scope string, d *compute.Disk) error {
		if !labelled(d.Labels, cluster) {
			return nil
		}
		if d.Id == 0 || d.Name == "" {
			return finalError{fmt.Errorf("found a disk %q in %s without name or id", d.Name, scope)}
		}
		out = append(out, Disk{Zone: lastPart(scope), Name: d.Name, ID: strconv.FormatUint(d.Id, 10), Users: usersOf(d)})
		return nil
	})
	return out, problems, err
}

func idsOf(list *compute.DiskAggregatedList) (ids, problems []string, err error) {
	problems, err = eachDisk(list, func(_ string, d *compute.Disk) error {
		ids = append(ids, strconv.FormatUint(d.Id, 10))
		return nil
	})
	return ids, problems, err
}

// eachDisk goes through one page, and names what makes it incomplete.
func eachDisk(list *compute.DiskAggregatedList, take func(scope string, d *compute.Disk) error) (problems []string, err error) {
	if err := ofKind(list.Kind, "compute#diskAggregatedList"); err != nil {
		return nil, err
	}
	problems = unreachable(list.Unreachables)
	if w := list.Warning; w != nil {
		problems = append(problems, warning("all zones", w.Code, w.Message)...)
	}
	for _, scope := range sortedKeys(list.Items) {
		items := list.Items[scope]
		if w := items.Warning; w != nil {
			problems = append(problems, warning(scope, w.Code, w.Message)...)
		}
		for _, d := range items.Disks {
			if err := take(scope, d); err != nil {
				return nil, err
			}
		}
	}
	return problems, nil
}

// HasDisk finds a disk of the project by its id, whatever it is labelled. It is false only where a complete answer lacks it; whether the API
// filters by id as expected a caller finds out with an id that it knows to exist.
func (c *Compute) HasDisk(ctx context.Context, id string) (found bool, err error) {
	if n, err := strconv.ParseUint(id, 10, 64); err != nil || n == 0 {
		return false, fmt.Errorf("find the disk with id %q: a disk's id is a number", id)
	}
	err = c.pages(ctx, "the disk with id "+id, func(ctx context.Context, api *compute.Service, token string) (page, error) {
		list, err := api.Disks.AggregatedList(c.project).Context(ctx).Filter("id=" + id).PageToken(token).Do()
		if err != nil {
			return page{}, err
		}
		ids, problems, err := idsOf(list)
		return page{next: list.NextPageToken, problems: problems, take: func() { found = found || slices.Contains(ids, id) }}, err
	})
	return found && err == nil, err
}

// usersOf reads …/zones/ZONE/instances/NAME.
func usersOf(d *compute.Disk) []replica.Place {
	var out []replica.Place
	for _, user := range d.Users {
		before, name, ok := strings.Cut(user, "/instances/")
		if ok {
			out = append(out, replica.Place{Zone: lastPart(before), Name: name})
		}
	}
	return out
}

// Disk is the id of one zonal disk. found is false only where the API says of this very disk that it does not exist; a
// missing zone or project, which has the same status, is an error.
func (c *Compute) Disk(ctx context.Context, zone, name string) (id string, found bool, err error) {
	asked := fmt.Sprintf("disk %s in %s", name, zone)
	err = c.ask(ctx, asked, func(ctx context.Context, api *compute.Service) error {
		d, err := api.Disks.Get(c.project, zone, name).Context(ctx).Do()
		if err != nil {
			return err
		}
		if d.Id == 0 || d.Name != name {
			return finalError{fmt.Errorf("found a disk %q with id %d", d.Name, d.Id)}
		}
		id = strconv.FormatUint(d.Id, 10)
		return nil
	})
	if isMissing(err, "disks", name) {
		return "", false, nil
	}
	return id, err == nil, err
}

// isMissing: the API says of this very resource that it does not exist.
func isMissing(err error, kind, name string) bool {
	var status *googleapi.Error
	return errors.As(err, &status) && status.Code == http.StatusNotFound && strings.Contains(status.Message, "/"+kind+"/"+name+"'")
}
