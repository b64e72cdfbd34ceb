package gce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/backoff"
)

// InsertDisk makes an empty disk and returns when it is ready. Where a disk of that name stands already, with the same
// labels of quorate's own (those that begin with quorate-), it is done; where something else stands there, *Exists is
// returned. So it can be repeated after whatever happened. What Google refuses for a known reason is a *Refused.
// It needs compute.disks.create, compute.disks.setLabels and compute.disks.get.
func (c *Operator) InsertDisk(ctx context.Context, zone string, d DiskSpec) error {
	disk, err := c.disk(zone, d)
	if err != nil {
		return err
	}
	return c.insert(ctx, where{zone: zone}, "making disk "+d.Name+" in "+zone,
		func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
			return api.Disks.Insert(c.project, zone, disk).RequestId(request).Context(ctx).Do()
		},
		func(ctx context.Context) (site, error) { return c.diskStands(ctx, zone, d.Name, disk.Labels) })
}

// InsertVM makes a VM and returns when Google has started it. As InsertDisk it is done where that VM stands already,
// with its data disk. With an external address it needs in addition what GiveAddress does. It needs
// compute.instances.create, .get, .setLabels, .setMetadata, .setServiceAccount and
// .setTags, compute.disks.create, .use and .setLabels, compute.subnetworks.use, compute.images.useReadOnly, and on
// the service account iam.serviceAccounts.actAs.
func (c *Operator) InsertVM(ctx context.Context, zone string, v VMSpec) error {
	instance, err := c.instance(zone, v)
	if err != nil {
		return err
	}
	if v.ExternalIP != "" {
		access, err := c.accessTo(ctx, v.ExternalIP)
		if err != nil {
			return err
		}
		instance.NetworkInterfaces[0].AccessConfigs = []*compute.AccessConfig{access}
	}
	return c.insert(ctx, where{zone: zone}, "making instance "+v.Name+" in "+zone,
		func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
			return api.Instances.Insert(c.project, zone, instance).RequestId(request).Context(ctx).Do()
		},
		func(ctx context.Context) (site, error) { return c.instanceStands(ctx, zone, v, instance.Labels) })
}

// site is what stands where something is to be made.
type site int

const (
	free     site = iota
	onItsWay      // it is on its way in or out
	done
)

// insertTries is how often it is tried to make something whose name is taken and free in turn.
const insertTries = 5

// insert carries an order to make something out, and where its name or its disk is taken, finds out whether that is by
// it: Google does not say which of the two it looks at first.
func (c *Operator) insert(ctx context.Context, at where, asked string, begin beginning,
	stands func(context.Context) (site, error)) error {
	for tries := 1; ; tries++ {
		err := c.carryOut(ctx, at, asked, begin)
		var refused *Refused
		diskTaken := errors.As(explained(err), &refused) && refused.Reason == InUse
		if !alreadyThere(err) && !diskTaken {
			return explained(err)
		}
		is, errThere := c.settled(ctx, asked, stands)
		switch {
		case errThere != nil, is == done:
			return explained(errThere)
		case diskTaken:
			return refused
		}
		if tries == insertTries {
			return fmt.Errorf("%w, and nothing of that name is there", err)
		}
	}
}

// settled waits until what stands in a place is neither on its way in nor out.
func (c *Operator) settled(ctx context.Context, asked string, stands func(context.Context) (site, error)) (site,
	error) {
	pause := backoff.Backoff{First: firstPoll, Most: mostPoll}
	for {
		is, err := stands(ctx)
		if err != nil || is != onItsWay {
			return is, err
		}
		if err := backoff.Sleep(ctx, pause.Next()); err != nil {
			return is, fmt.Errorf("wait for %s: %w", asked, err)
		}
	}
}

// diskStands says whether a disk stands in a place, by its labels.
func (c *Operator) diskStands(ctx context.Context, zone, name string, labels map[string]string) (site, error) {
	d, found, err := c.getDisk(ctx, zone, name)
	switch {
	case err != nil, !found:
		return free, err
	case d.Status == "DELETING":
		return onItsWay, nil
	}
	if is := otherwise(labels, d.Labels); is != "" {
		return free, &Exists{"disk", zone, name, strconv.FormatUint(d.Id, 10), d.Labels, is}
	}
	switch d.Status {
	case "CREATING", "RESTORING":
		return onItsWay, nil
	case "READY":
		return done, nil
	}
	return free, fmt.Errorf("make disk %s in %s: it is there, in the state %s", name, zone, d.Status)
}

// instanceStands says whether a VM stands in a place, by its labels and its data disk.
func (c *Operator) instanceStands(ctx context.Context, zone string, v VMSpec, labels map[string]string) (site, error) {
	i, found, err := c.getInstance(ctx, zone, v.Name)
	if err != nil || !found {
		return free, err
	}
	is := otherwise(labels, i.Labels)
	hasDisk := slices.ContainsFunc(i.Disks, func(d *compute.AttachedDisk) bool {
		return !d.Boot && lastPart(d.Source) == v.DataDisk
	})
	if is == "" && v.DataDisk != "" && !hasDisk {
		is = "it does not have the disk " + v.DataDisk
	}
	switch {
	case i.Status == "DEPROVISIONING":
		return onItsWay, nil
	case is != "":
		return free, &Exists{"instance", zone, v.Name, strconv.FormatUint(i.Id, 10), i.Labels, is}
	case i.Status == "PROVISIONING" || i.Status == "STAGING":
		return onItsWay, nil
	}
	return done, nil
}

// getDisk is one disk by its name or numeric id. found is false only where the API says so of this very disk.
func (c *Operator) getDisk(ctx context.Context, zone, name string) (d *compute.Disk, found bool, err error) {
	err = c.ask(ctx, "disk "+name+" in "+zone, func(ctx context.Context, api *compute.Service) (err error) {
		d, err = api.Disks.Get(c.project, zone, name).Context(ctx).Do()
		if err == nil && (d.Id == 0 || d.Name == "") {
			err = finalError{fmt.Errorf("found a disk %q without name or id", d.Name)}
		}
		return err
	})
	if isMissing(err, "disks", name) {
		return nil, false, nil
	}
	return d, err == nil, err
}

// getInstance is one VM by its name or numeric id, as getDisk.
func (c *Operator) getInstance(ctx context.Context, zone, name string) (i *compute.Instance, found bool, err error) {
	err = c.ask(ctx, "instance "+name+" in "+zone, func(ctx context.Context, api *compute.Service) (err error) {
		i, err = api.Instances.Get(c.project, zone, name).Context(ctx).Do()
		if err == nil && (i.Id == 0 || i.Name == "") {
			err = finalError{fmt.Errorf("found an instance %q without name or id", i.Name)}
		}
		return err
	})
	if isMissing(err, "instances", name) {
		return nil, false, nil
	}
	return i, err == nil, err
}
