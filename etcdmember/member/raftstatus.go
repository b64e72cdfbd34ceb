package member

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// RaftStatus is what a member knows of raft: whether it leads, and, if so, what the others have acknowledged to it.
// Every member tells it to the other replicas on its client port, also where there is no quorum. etcd has no call for
// it, so it is a gRPC service of quorate's next to etcd's own. The answer is raft's own JSON (raft.Status).
type RaftStatus struct {
	// State is StateLeader on the leader.
	State  string `json:"raftState"`
	Commit uint64 `json:"commit"`
	// Progress is the leader's, by member ids in hexadecimal.
	Progress map[string]struct {
		Match uint64 `json:"match"`
	} `json:"progress"`
}

const raftService, raftMethod = "quorate.Member", "RaftStatus"

// AskRaft asks the member with this DNS name, at the address. A learner's answer is the zero RaftStatus. A member of
// the release before this one has no such service, and is asked by HTTP.
func AskRaft(ctx context.Context, dnsName string, address netip.Addr, tlsConfig *tls.Config) (s RaftStatus, err error) {
	c, err := Dial(dnsName, address, tlsConfig)
	if err != nil {
		return s, err
	}
	defer c.Close()
	s, err = askService(ctx, c)
	switch {
	case status.Code(err) == codes.Unimplemented:
		return askFormer(ctx, dnsName, address, tlsConfig)
	case errors.Is(err, rpctypes.ErrGRPCNotSupportedForLearner):
		return RaftStatus{}, nil // etcd refuses to let a learner answer calls that it does not know
	}
	return s, err
}

func askService(ctx context.Context, c *clientv3.Client) (s RaftStatus, err error) {
	var answer wrapperspb.BytesValue
	err = c.ActiveConnection().Invoke(ctx, "/"+raftService+"/"+raftMethod, &emptypb.Empty{}, &answer)
	if err != nil {
		return s, fmt.Errorf("ask for raft's status: %w", err)
	}
	if err := json.Unmarshal(answer.GetValue(), &s); err != nil {
		return s, fmt.Errorf("decode raft's status: %w", err)
	}
	return s, nil
}

// registerRaftStatus adds the service to one of etcd's gRPC servers, which asks for a client's certificate.
func registerRaftStatus(s *grpc.Server) {
	s.RegisterService(&grpc.ServiceDesc{ServiceName: raftService, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: raftMethod, Handler: answerRaftStatus}}}, nil)
}

// answerRaftStatus is what protoc would generate, and the answer.
func answerRaftStatus(_ any, ctx context.Context, decode func(any) error, etcds grpc.UnaryServerInterceptor) (any,
	error) {
	request := &emptypb.Empty{}
	if err := decode(request); err != nil {
		return nil, err
	}
	return etcds(ctx, request, &grpc.UnaryServerInfo{FullMethod: "/" + raftService + "/" + raftMethod},
		func(context.Context, any) (any, error) {
			text, err := raftJSON()
			if err != nil {
				return nil, status.Error(codes.Unavailable, err.Error())
			}
			return wrapperspb.Bytes(text), nil
		})
}

// errNoRaft: etcd has not yet published raft's status.
var errNoRaft = errors.New("raft has not begun")

// raftJSON is the status of the member in this process.
func raftJSON() ([]byte, error) {
	st, ok := localRaft()
	if !ok {
		return nil, errNoRaft
	}
	return st.MarshalJSON()
}
