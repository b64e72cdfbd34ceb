package compute

import (
	"net/http"
	"net/netip"
	"regexp"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// Changes carry out what changes a project. What they are asked for was possible a moment ago, by what Config.Instances
// and Config.Unattached returned, and no other order of the API comes between.
type Changes interface {
	// AddInstance adds an instance that is off: with that id, name, zone and the rest, but with an address of its own.
	// Its data disk is one that no VM has. Config.Instances returns it from then on.
	AddInstance(i instance.VM) error
	// StartInstance boots an instance that was added.
	StartInstance(id uint64) error
	// StopInstance stops an instance, and returns when it is off.
	StopInstance(id uint64) error
	// DeleteInstance stops an instance and deletes it, and where withDisk says so its data disk.
	DeleteInstance(id uint64, withDisk bool) error
	// SetExternalIP gives an instance a reserved address that nobody has, or, with the zero value, none.
	SetExternalIP(id uint64, address netip.Addr) error
	// AddDisk adds an empty disk to a zone. Config.Unattached returns it from then on.
	AddDisk(zone string, d instance.Disk) error
	// DeleteDisk deletes a disk that no VM has.
	DeleteDisk(id uint64) error
}

// job is an order that can be carried out. now is done before it is answered, and may be nil; then is done afterwards.
type job struct {
	target
	now, then func() error
}

// refusal is an order that does not begin.
type refusal struct {
	status       int
	reason, text string
}

// preparation finds out whether an order can be carried out, and how. Nothing is ordered meanwhile.
type preparation func() (job, *refusal)

// isRequestID is what Google allows as a requestId: a UUID.
var isRequestID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// order answers a request that changes something, as orderBy does.
func (c *Server) order(w http.ResponseWriter, r *http.Request, kind, permission string, prepare preparation) {
	c.orderBy(w, r, kind, []string{permission}, prepare)
}

// checkPermissions refuses a VM what its account's roles do not allow; others may do anything. It answers itself where
// it returns false.
func (c *Server) checkPermissions(w http.ResponseWriter, r *http.Request, permissions ...string) bool {
	if c.conf.Caller == nil || c.conf.Caller(r) == "" {
		return true
	}
	for _, permission := range permissions {
		if !c.conf.Settings.Grants(instance.MastersAccount(), permission) {
			answer.Error(w, http.StatusForbidden, "forbidden",
				"Required '"+permission+"' permission for 'projects/"+instance.ProjectID+"'")
			return false
		}
	}
	return true
}

// orderBy answers a request that changes something: with a new operation, or the one that the same request has begun
// before. All the permissions are needed.
func (c *Server) orderBy(w http.ResponseWriter, r *http.Request, kind string, permissions []string,
	prepare preparation) {
	if !c.checkProject(w, r) || c.unreachable(w, r, r.PathValue("zone")) {
		return
	}
	if c.conf.Changes == nil {
		answer.Error(w, http.StatusForbidden, "forbidden",
			"Required '"+permissions[0]+"' permission for 'projects/"+instance.ProjectID+"'")
		return
	}
	if !c.checkPermissions(w, r, permissions...) {
		return
	}
	refused, o := checkQuery(r), operation{}
	if refused == nil {
		o, refused = c.begin(r, kind, prepare)
	}
	switch {
	case refused != nil:
		refuse(w, refused)
	case fault.Of(r).Kind == "lost":
		panic(http.ErrAbortHandler) // net/http breaks the connection
	default:
		answer.JSON(w, operationResource(r, o))
	}
}

func (c *Server) begin(r *http.Request, kind string, prepare preparation) (operation, *refusal) {
	c.orders.Lock()
	defer c.orders.Unlock()
	if c.operations.ctx.Err() != nil {
		return operation{}, &refusal{http.StatusServiceUnavailable, "backendError", "The project is being closed."}
	}
	request := r.URL.Query().Get("requestId")
	if request != "" && !isRequestID.MatchString(request) {
		return operation{}, &refusal{http.StatusBadRequest, "invalid",
			"Invalid value for field 'requestId': '" + request + "'. Must be a valid UUID."}
	}
	if o, known := c.operations.find(func(o operation) bool { return request != "" && o.request == request }); known {
		return o, nil
	}
	j, refused := prepare()
	if refused != nil {
		return operation{}, refused
	}
	f := fault.Of(r)
	if f.Kind == "failed" {
		j.now, j.then = nil, func() error { return failure{f.Code, "The operation failed: " + f.Code + "."} }
	}
	o := c.operations.add(operation{target: j.target, kind: kind, request: request})
	pending := *o
	if j.now != nil {
		if err := j.now(); err != nil {
			c.operations.drop(o)
			return operation{}, &refusal{http.StatusInternalServerError, "internalError", err.Error()}
		}
	}
	half := c.conf.OperationTime() / 2
	c.operations.run(o, delayOf(f)+half, j.then, half)
	return pending, nil
}
