package gce

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/pattern"
)

// Reason is why Google does not make or delete something. Its text is stable.
type Reason string

// The reasons.
const (
	QuotaExceeded     Reason = "quota-exceeded"
	NoCapacity        Reason = "no-capacity" // the zone has no machine of the type now
	PermissionMissing Reason = "permission-missing"
	InUse             Reason = "in-use" // a disk that is attached to a VM, an address that something has
	InvalidRequest    Reason = "invalid-request"
	ImageUnusable     Reason = "image-unusable" // there is none, or it is deprecated, or not ready
	DiskWouldGo       Reason = "disk-would-go"  // a VM's data disk is set to be deleted with it
	NotFound          Reason = "not-found"      // what is needed is missing: a zone, a network, a disk
)

// Refused is an order that Google does not carry out, for a reason that an operator can do something about.
type Refused struct {
	Reason Reason
	// Permission is the one that the caller lacks, such as compute.instances.create; empty: Google does not name it.
	Permission string
	err        error
}

// Error says what was asked, what Google said, and what to do.
func (r *Refused) Error() string {
	if hint := r.hint(); hint != "" {
		return r.err.Error() + "; " + hint
	}
	return r.err.Error()
}

// Unwrap is what Google said.
func (r *Refused) Unwrap() error { return r.err }

func (r *Refused) hint() string {
	switch {
	case r.Reason == QuotaExceeded:
		return "have the project's quota raised, or delete what is not needed"
	case r.Reason == NoCapacity:
		return "the zone has no machine of this type now: take another zone or type, or try again later"
	case r.Reason == PermissionMissing && r.Permission != "":
		return "the caller lacks the permission " + r.Permission
	}
	return ""
}

// reasons are Google's words for them: of an operation that failed, and of a request that was refused.
var reasons = map[string]Reason{
	"QUOTA_EXCEEDED":                            QuotaExceeded,
	"ZONE_RESOURCE_POOL_EXHAUSTED":              NoCapacity,
	"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": NoCapacity,
	"PERMISSIONS_ERROR":                         PermissionMissing,
	"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE":       InUse,
	"IP_IN_USE_BY_ANOTHER_RESOURCE":             InUse,
	"RESOURCE_NOT_FOUND":                        NotFound,
	"INVALID_FIELD_VALUE":                       InvalidRequest,
	"INVALID_USAGE":                             InvalidRequest,
	"quotaExceeded":                             QuotaExceeded,
	"zoneResourcePoolExhausted":                 NoCapacity,
	"resourceInUseByAnotherResource":            InUse,
	"forbidden":                                 PermissionMissing,
	"notFound":                                  NotFound,
	"invalid":                                   InvalidRequest,
	"required":                                  InvalidRequest,
	"badRequest":                                InvalidRequest,
	"invalidUsage":                              InvalidRequest,
}

// permission is how Google names the one that is missing: Required 'compute.disks.create' permission for …
var permission = pattern.Of(`[Rr]equired '([a-z][a-zA-Z.]+)' permission`)

// explained marks an order's failure with its reason, where it has one of ours.
func explained(err error) error {
	words, text := saidBy(err)
	for _, w := range words {
		reason, known := reasons[w]
		if !known {
			continue
		}
		if reason == NotFound && strings.Contains(text, "/images/") {
			reason = ImageUnusable
		}
		out := &Refused{Reason: reason, err: err}
		if m := permission().FindStringSubmatch(text); reason == PermissionMissing && m != nil {
			out.Permission = m[1]
		}
		return out
	}
	return err
}

// saidBy are Google's words for a failure, and its text.
func saidBy(err error) (words []string, text string) {
	var failed *failedOperation
	var status *googleapi.Error
	switch {
	case errors.As(err, &failed):
		return []string{failed.code}, failed.text
	case errors.As(err, &status):
		for _, item := range status.Errors {
			words = append(words, item.Reason)
		}
		return words, status.Message
	}
	return nil, ""
}

// Exists says that something else has the name of what was to be made. Nothing was changed.
type Exists struct {
	// Kind is disk or instance. ID and Labels are those of what stands there.
	Kind, Zone, Name, ID string
	Labels               map[string]string
	// Differs says in which way it is not what was to be made.
	Differs string
}

// Error implements error.
func (e *Exists) Error() string {
	return fmt.Sprintf("make %s %s in %s: there is another of that name (%s): %s", e.Kind, e.Name, e.Zone, e.ID,
		e.Differs)
}

// Changed says that what was to be deleted is gone, and that something else has its name. Nothing was changed.
type Changed struct {
	// Kind is disk or instance. ID was to be deleted; Found stands there.
	Kind, Zone, Name, ID, Found string
}

// Error implements error.
func (e *Changed) Error() string {
	return fmt.Sprintf("delete %s %s in %s (%s): another one has that name by now (%s), which is left alone", e.Kind,
		e.Name, e.Zone, e.ID, e.Found)
}

// alreadyThere: an order to make something met one of the same name.
func alreadyThere(err error) bool {
	var status *googleapi.Error
	var failed *failedOperation
	if errors.As(err, &failed) {
		return failed.code == "RESOURCE_ALREADY_EXISTS"
	}
	return errors.As(err, &status) && status.Code == http.StatusConflict &&
		slices.ContainsFunc(status.Errors, func(i googleapi.ErrorItem) bool { return i.Reason == "alreadyExists" })
}

// isBusy: another operation changes what an order is about.
func isBusy(err error) bool {
	words, _ := saidBy(err)
	return slices.Contains(words, "resourceNotReady") || slices.Contains(words, "RESOURCE_NOT_READY")
}

// ownLabels begin like this: they say what a resource is of which cluster. The others are the operator's, who may have
// changed them since.
const ownLabels = "quorate-"

// otherwise says in which of quorate's own labels a resource is not as wanted; empty: in none.
func otherwise(wanted, found map[string]string) string {
	var out []string
	names := maps.Clone(wanted)
	maps.Copy(names, found)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(name, ownLabels) && wanted[name] != found[name] {
			out = append(out, fmt.Sprintf("its label %s is %q, not %q", name, found[name], wanted[name]))
		}
	}
	return strings.Join(out, ", ")
}
