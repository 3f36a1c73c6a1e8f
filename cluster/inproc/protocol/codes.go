package protocol

import (
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster"
)

// Code is an error code of Apache Fluss.
type Code int

// The codes in use, with Fluss's numbers.
const (
	CodeUnknownServer                Code = -1
	CodeNone                         Code = 0
	CodeNetwork                      Code = 1
	CodeTableMissing                 Code = 7
	CodeTableExists                  Code = 8
	CodeNotLeaderOrFollower          Code = 12
	CodeInvalidTable                 Code = 15
	CodeInvalidReplication           Code = 17
	CodeOffsetOutOfRange             Code = 19
	CodeUnknownTableOrBucket         Code = 21
	CodeInvalidUpdateVersion         Code = 22
	CodeInvalidCoordinator           Code = 23
	CodeFencedLeaderEpoch            Code = 24
	CodeRequestTimedOut              Code = 25
	CodeStorage                      Code = 26
	CodeNotAttempted                 Code = 27
	CodeNotEnoughReplicasAfterAppend Code = 28
	CodeNotEnoughReplicas            Code = 29
	CodeOutOfOrderSequence           Code = 31
	CodeDuplicateSequence            Code = 32
	CodeUnknownWriter                Code = 33
	CodePartitionMissing             Code = 36
	CodePartitionExists              Code = 37
	CodeLeaderNotAvailable           Code = 44
	CodeIneligibleReplica            Code = 55
	CodeNotCoordinatorLeader         Code = 65
	// CodeLeadershipLostAfterAppend is ours, not Fluss's: the leader lost its
	// role after it had appended the batch, so the write's outcome is unknown.
	CodeLeadershipLostAfterAppend Code = 1012
)

var codeNames = map[Code]string{
	CodeUnknownServer: "UNKNOWN_SERVER_ERROR", CodeNone: "NONE", CodeNetwork: "NETWORK_EXCEPTION",
	CodeTableMissing: "TABLE_NOT_EXIST", CodeTableExists: "TABLE_ALREADY_EXIST",
	CodeNotLeaderOrFollower: "NOT_LEADER_OR_FOLLOWER", CodeInvalidTable: "INVALID_TABLE",
	CodeInvalidReplication: "INVALID_REPLICATION_FACTOR", CodeOffsetOutOfRange: "LOG_OFFSET_OUT_OF_RANGE",
	CodeUnknownTableOrBucket: "UNKNOWN_TABLE_OR_BUCKET", CodeInvalidUpdateVersion: "INVALID_UPDATE_VERSION",
	CodeInvalidCoordinator: "INVALID_COORDINATOR", CodeFencedLeaderEpoch: "FENCED_LEADER_EPOCH",
	CodeRequestTimedOut: "REQUEST_TIME_OUT", CodeStorage: "STORAGE_EXCEPTION", CodeNotAttempted: "OPERATION_NOT_ATTEMPTED",
	CodeNotEnoughReplicasAfterAppend: "NOT_ENOUGH_REPLICAS_AFTER_APPEND", CodeNotEnoughReplicas: "NOT_ENOUGH_REPLICAS",
	CodeOutOfOrderSequence: "OUT_OF_ORDER_SEQUENCE", CodeDuplicateSequence: "DUPLICATE_SEQUENCE",
	CodeUnknownWriter: "UNKNOWN_WRITER_ID", CodePartitionMissing: "PARTITION_NOT_EXISTS", CodePartitionExists: "PARTITION_ALREADY_EXISTS",
	CodeLeaderNotAvailable: "LEADER_NOT_AVAILABLE", CodeIneligibleReplica: "INELIGIBLE_REPLICA",
	CodeNotCoordinatorLeader: "NOT_COORDINATOR_LEADER", CodeLeadershipLostAfterAppend: "LEADERSHIP_LOST_AFTER_APPEND",
}

// String returns Fluss's name of the code.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("code %d", int(c))
}

// Refusal reports whether the code says "not I": one that counts towards a
// retry storm.
func (c Code) Refusal() bool {
	return c == CodeNotLeaderOrFollower || c == CodeUnknownTableOrBucket || c == CodeLeaderNotAvailable
}

// Err is the code as an error: nil for CodeNone, definite where the request was
// certainly not executed and never will be.
func (c Code) Err() error {
	switch c {
	case CodeNone:
		return nil
	case CodeUnknownServer, CodeNetwork, CodeRequestTimedOut, CodeNotEnoughReplicasAfterAppend,
		CodeStorage, CodeLeadershipLostAfterAppend,
		CodeDuplicateSequence: // the original was appended, and may be lost or kept
		return CodeError{c}
	default:
		return cluster.Definite(CodeError{c})
	}
}

// CodeError is a Code as an error.
type CodeError struct{ Code Code }

func (e CodeError) Error() string { return fmt.Sprintf("%s (%d)", e.Code, int(e.Code)) }
