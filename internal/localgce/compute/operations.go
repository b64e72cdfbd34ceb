package compute

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// operation is what compute/v1 answers to an order that takes time: a resource of the zone, of the region or of the
// whole project, which is polled until it is DONE.
type operation struct {
	id uint64
	target
	kind string // insert, delete, stop
	// request is the caller's requestId: the same one twice is one order.
	request string
	// It is PENDING from begun on, RUNNING from started on and DONE from ended on.
	begun, started, ended time.Time
	err                   error
}

// target is what an operation is about. resource is such as instances or disks. It is of a zone, of a region, or, with
// neither, of the whole project.
type target struct {
	resource, zone, region, name string
	id                           uint64
}

func (t target) path() string { return t.scope() + "/" + t.resource + "/" + t.name }

// scope is the path of what it is of.
func (t target) scope() string {
	switch {
	case t.zone != "":
		return "projects/" + instance.ProjectID + "/zones/" + t.zone
	case t.region != "":
		return "projects/" + instance.ProjectID + "/regions/" + t.region
	}
	return "projects/" + instance.ProjectID + "/global"
}

// targetOf is what a path names.
func targetOf(r *http.Request, resource, name string) target {
	return target{resource: resource, zone: r.PathValue("zone"), region: r.PathValue("region"), name: name}
}

func (o operation) name() string { return "operation-" + answer.Decimal(o.id) }

func (o operation) isOver() bool { return !o.ended.IsZero() }

// failure is an operation's error with a code of Google's.
type failure struct{ code, text string }

// Error implements error.
func (f failure) Error() string { return f.text }

// operations are all that were begun, and their goroutines.
type operations struct {
	ctx    context.Context // ends when the server is closed
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu   sync.Mutex
	list []*operation
}

// add makes a new operation known, which is not carried out yet.
func (s *operations) add(o operation) *operation {
	o.id, o.begun = instance.NewID(), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, &o)
	return &o
}

// drop forgets an operation of which nothing came.
func (s *operations) drop(o *operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(x *operation) bool { return x == o })
}

// run carries an operation out after a time, unless the server is closed before; then is until it is over.
func (s *operations) run(o *operation, first time.Duration, act func() error, then time.Duration) {
	s.tasks.Go(func() {
		err := backoff.Sleep(s.ctx, first)
		if err == nil {
			s.change(func() { o.started = time.Now() })
			err = act()
			_ = backoff.Sleep(s.ctx, then) // what was done was done
		}
		s.change(func() { o.ended, o.err = time.Now(), err })
	})
}

func (s *operations) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// find is the first that ok says so of.
func (s *operations) find(ok func(operation) bool) (operation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.list {
		if ok(*o) {
			return *o, true
		}
	}
	return operation{}, false
}

// underWay is the operation that something is in, if there is one.
func (s *operations) underWay(resource string, id uint64) (operation, bool) {
	return s.find(func(o operation) bool { return !o.isOver() && o.resource == resource && o.target.id == id })
}

// status is what something is shown as while it is in an operation, or else what it is.
func (s *operations) status(resource string, id uint64, is string) string {
	o, ok := s.underWay(resource, id)
	words := map[string]string{"disks insert": "CREATING", "disks delete": "DELETING",
		"instances insert": "PROVISIONING", "instances delete": "STOPPING", "instances stop": "STOPPING"}
	if word := words[o.resource+" "+o.kind]; ok && word != "" {
		return word
	}
	return is
}

// getOperation answers zoneOperations.get, and those of regions and of the project.
func (c *Server) getOperation(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) || c.unreachable(w, r, r.PathValue("zone")) {
		return
	}
	if o, ok := c.operation(r); ok {
		answer.JSON(w, operationResource(r, o))
		return
	}
	refuse(w, absent(targetOf(r, "operations", r.PathValue("name"))))
}

// operationWait is how long zoneOperations.wait waits for an operation, and operationPoll how often it asks.
const operationWait, operationPoll = 2 * time.Minute, 20 * time.Millisecond

// waitOperation answers zoneOperations.wait, and those of regions and of the project: once the operation is over, or
// after two minutes as it is.
func (c *Server) waitOperation(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) || c.unreachable(w, r, r.PathValue("zone")) {
		return
	}
	for end := time.Now().Add(operationWait); ; {
		o, ok := c.operation(r)
		switch {
		case !ok:
			refuse(w, absent(targetOf(r, "operations", r.PathValue("name"))))
			return
		case o.isOver() || time.Now().After(end):
			answer.JSON(w, operationResource(r, o))
			return
		case backoff.Sleep(r.Context(), operationPoll) != nil:
			return // nobody listens any more
		}
	}
}

// operation finds the one that a request names.
func (c *Server) operation(r *http.Request) (operation, bool) {
	t := targetOf(r, "operations", r.PathValue("name"))
	return c.operations.find(func(o operation) bool {
		return o.scope() == t.scope() && slices.Contains([]string{o.name(), answer.Decimal(o.id)}, t.name)
	})
}

func operationResource(r *http.Request, o operation) resource {
	base := "http://" + r.Host + "/compute/v1/"
	out := resource{
		"kind": "compute#operation", "id": answer.Decimal(o.id), "name": o.name(),
		"operationType": o.kind, "status": "PENDING", "progress": 0,
		"targetId": answer.Decimal(o.target.id), "targetLink": base + o.path(),
		"selfLink": base + o.scope() + "/operations/" + o.name(), "insertTime": timestamp(o.begun), "user": operator,
	}
	if o.zone != "" {
		out["zone"] = base + o.scope()
	} else if o.region != "" {
		out["region"] = base + o.scope()
	}
	if o.request != "" {
		out["clientOperationId"] = o.request
	}
	if !o.started.IsZero() {
		out["status"], out["startTime"] = "RUNNING", timestamp(o.started)
	}
	if !o.isOver() {
		return out
	}
	out["status"], out["progress"], out["endTime"] = "DONE", 100, timestamp(o.ended)
	if o.err != nil {
		code := "INTERNAL_ERROR"
		var known failure
		if errors.As(o.err, &known) {
			code = known.code
		}
		out["httpErrorStatusCode"], out["httpErrorMessage"] = http.StatusInternalServerError, "INTERNAL SERVER ERROR"
		out["error"] = map[string]any{"errors": []any{map[string]any{"code": code, "message": o.err.Error()}}}
	}
	return out
}

// operator is who orders, as operations show it.
const operator = "operator@example.com"

// delayOf is how long after its beginning an operation is carried out.
func delayOf(f fault.Fault) time.Duration {
	if f.Kind == "late" || f.Kind == "failed" {
		return f.Delay
	}
	return 0
}
