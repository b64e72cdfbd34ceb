package etcdmember

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/connectivity"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// line is one connection to a member.
type line struct {
	to     lineTo
	tls    *tls.Config
	client *clientv3.Client
	conn   net.Conn
	opened time.Time
	// unused closes it.
	unused *time.Timer
}

// lineTo is whom a line leads to.
type lineTo struct {
	address netip.Addr
	dnsName string
}

// openLine makes a line of a plain connection, which is closed with it.
func openLine(conn net.Conn, to lineTo, tlsConfig *tls.Config) (*line, error) {
	c, err := member.DialOver(conn, to.dnsName, tlsConfig)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &line{to: to, tls: tlsConfig, client: c, conn: conn, opened: time.Now()}, nil
}

func (l *line) close() {
	l.client.Close()
	l.conn.Close()
}

// lines keeps the connections by which members answered through quorum, for the next question: agreeing on TLS and
// gRPC costs a member twice as much as the question does. One that is not used for lineIdle is closed. None is used for
// longer than lineLife: a member that could not be connected to anew, because its certificate has run out or it has no
// descriptor left, is found out by then. Its answers until then are no less its own. All methods are safe for
// concurrent use.
type lines struct {
	mu   sync.Mutex
	free map[lineTo]*line
}

// take is a line that is free, of that configuration, and the caller's now; nil: there is none.
func (k *lines) take(to lineTo, tlsConfig *tls.Config) *line {
	k.mu.Lock()
	l := k.free[to]
	delete(k.free, to)
	k.mu.Unlock()
	if l == nil {
		return nil
	}
	l.unused.Stop()
	if l.tls != tlsConfig || time.Since(l.opened) > lineLife ||
		l.client.ActiveConnection().GetState() != connectivity.Ready {
		l.close()
		return nil
	}
	return l
}

// keep makes a line free. Of two to the same member one is closed.
func (k *lines) keep(l *line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.free[l.to] != nil {
		l.close()
		return
	}
	if k.free == nil {
		k.free = map[lineTo]*line{}
	}
	k.free[l.to] = l
	l.unused = time.AfterFunc(lineIdle, func() { k.drop(l) })
}

// drop closes a line unless somebody has taken it.
func (k *lines) drop(l *line) {
	k.mu.Lock()
	free := k.free[l.to] == l
	if free {
		delete(k.free, l.to)
	}
	k.mu.Unlock()
	if free {
		l.close()
	}
}

// dropAll closes those that are free.
func (k *lines) dropAll() {
	k.mu.Lock()
	all := k.free
	k.free = nil
	k.mu.Unlock()
	for _, l := range all {
		l.unused.Stop()
		l.close()
	}
}

// askAgain asks by a line that is kept. What is not a whole answer, and soon, is none: the line is closed, and the
// caller asks anew, and finds out by that how far the member can be reached.
func (k *asker) askAgain(ctx context.Context, to lineTo, tlsConfig *tls.Config, a table.Answer) (table.Answer, bool) {
	l := k.lines.take(to, tlsConfig)
	if l == nil {
		return a, false
	}
	ctx, cancel := context.WithTimeout(ctx, k.linePatience)
	defer cancel()
	l.ask(ctx, &a)
	return a, k.lines.keepOrClose(l, a)
}

// ask fills in what the member says.
func (l *line) ask(ctx context.Context, a *table.Answer) {
	if id, list, err := member.List(ctx, l.client); err == nil {
		a.Reach, a.ClusterID, a.Members = table.ReachLinearizable, id, list
	}
	if st, err := l.client.Status(ctx, member.ClientURL(l.to.dnsName)); err == nil {
		a.Reach = max(a.Reach, table.ReachAnswers)
		a.ClusterID, a.Version = record.MemberID(st.Header.GetClusterId()), st.Version
		a.Database, a.Leads = st.DbSize, st.Leader != 0 && st.Leader == st.Header.GetMemberId()
	}
}

// keepOrClose keeps a line by which everything was answered.
func (k *lines) keepOrClose(l *line, a table.Answer) (kept bool) {
	if a.Reach != table.ReachLinearizable || a.Version == "" {
		l.close()
		return false
	}
	k.keep(l)
	return true
}
