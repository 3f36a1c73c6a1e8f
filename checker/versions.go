package checker

import (
	"cmp"
	"slices"
)

// A register whose writes and reads tell versions (a znode's version or mzxid, a
// key's revision) is decided by sorting: the version is the place in the order, a
// write comes first at its version and the reads of it after. It is linearizable
// iff no operation of a later place returned before one of an earlier place was
// called, and every read saw the value of its version. Values may repeat, and a
// delete is a write.
//
// A write of unknown outcome whose version somebody saw gets that version, by its
// value, the earliest call to the lowest version: nothing else tells such writes
// apart, and lower versions only want earlier calls. One that nobody saw is left
// out; but where versions count writes (dense), a version without an owner needs
// one of them.
//
// ZooKeeper promises this for sync and read, not for a plain read.

// unknownValue is the value of a read that tells only the version, as a failed
// conditional write does.
const unknownValue = int32(-1)

// unknownVersion is the version of a write of unknown outcome.
const unknownVersion = int64(-1)

// versionOp is an operation on a versioned register.
type versionOp struct {
	Call, Ret int32
	Version   int64
	Value     int32
	Write     bool
}

// versionFault is what the check found.
type versionFault uint8

const (
	versionsLegal     versionFault = iota
	versionsUndecided              // several ways to fill versions without an owner
	versionsTwice                  // two writes with one version
	versionsUnwritten              // a version was seen that no write can have made
	versionsValue                  // a version was seen with another value
	versionsGap                    // dense versions with a hole that no write can fill
	versionsOrder                  // the order of versions contradicts real time
)

// versionAnswer is the answer with the operations that it rests on.
type versionAnswer struct {
	fault versionFault
	a, b  int32
}

func (v versionAnswer) answer() answer {
	switch v.fault {
	case versionsLegal:
		return legal
	case versionsUndecided:
		return notAsked
	default:
		return illegal
	}
}

// versionPlace is one version: its write, its value, and whoever read it.
type versionPlace struct {
	version    int64
	write      int32 // noOp for none known
	value      int32
	read       int32 // some read, noOp for none
	first      int32 // the read with the smallest return
	last       int32 // the read with the largest call
	valueFrom  int32 // operation that told the value
	beforeHand bool  // the version that was there before everything
}

// judgeVersions decides a versioned register. The register starts at version start
// with the initial value. Dense says that every write adds one to the version.
func judgeVersions(ops []versionOp, start int64, dense bool) versionAnswer {
	places, crashed, bad := placesOf(ops, start)
	if bad.fault != versionsLegal {
		return bad
	}
	if bad := giveCrashed(ops, &places, crashed, dense); bad.fault != versionsLegal {
		return bad
	}
	return versionOrder(ops, places)
}

// placesOf gathers the versions that anybody told, in their order, and the writes
// of unknown outcome by call.
func placesOf(ops []versionOp, start int64) (places []versionPlace, crashed []int32, bad versionAnswer) {
	index := map[int64]int{start: 0}
	places = []versionPlace{{version: start, write: noOp, value: initial, read: noOp, first: noOp, last: noOp, valueFrom: noOp, beforeHand: true}}
	for i, op := range ops {
		if op.Version == unknownVersion {
			if op.Write {
				crashed = append(crashed, int32(i))
			}
			continue
		}
		k, known := index[op.Version]
		if !known {
			k = len(places)
			index[op.Version] = k
			places = append(places, versionPlace{version: op.Version, write: noOp, value: unknownValue, read: noOp, first: noOp, last: noOp, valueFrom: noOp})
		}
		p := &places[k]
		if op.Version < start || op.Write && op.Version == start {
			return nil, nil, versionAnswer{versionsUnwritten, int32(i), noOp}
		}
		if op.Write && p.write != noOp {
			return nil, nil, versionAnswer{versionsTwice, p.write, int32(i)}
		}
		if op.Value != unknownValue {
			if (p.value != unknownValue || p.beforeHand) && p.value != op.Value {
				return nil, nil, versionAnswer{versionsValue, int32(i), p.valueFrom}
			}
			p.value, p.valueFrom = op.Value, int32(i)
		}
		if op.Write {
			p.write = int32(i)
			continue
		}
		p.read = int32(i)
		if p.first == noOp || op.Ret < ops[p.first].Ret {
			p.first = int32(i)
		}
		if p.last == noOp || op.Call > ops[p.last].Call {
			p.last = int32(i)
		}
	}
	slices.SortFunc(places, func(a, b versionPlace) int { return cmp.Compare(a.version, b.version) })
	slices.SortFunc(crashed, func(a, b int32) int { return cmp.Compare(ops[a].Call, ops[b].Call) })
	return places, crashed, versionAnswer{}
}

// giveCrashed gives the versions that were seen without a known write, and the
// holes between dense ones, to writes of unknown outcome.
func giveCrashed(ops []versionOp, places *[]versionPlace, crashed []int32, dense bool) versionAnswer {
	spare := map[int32][]int32{} // by value, in order of call
	for _, i := range crashed {
		spare[ops[i].Value] = append(spare[ops[i].Value], i)
	}
	wanted, blind := map[int32]int{}, 0
	for k := range *places {
		p := &(*places)[k]
		switch {
		case p.beforeHand || p.write != noOp:
		case p.value == unknownValue:
			blind++ // seen by version only: any write of unknown outcome will do
		default:
			list := spare[p.value]
			if len(list) == 0 {
				return versionAnswer{versionsUnwritten, p.read, noOp}
			}
			p.write, spare[p.value] = list[0], list[1:]
			wanted[p.value]++
		}
	}
	if dense {
		last := (*places)[len(*places)-1].version - (*places)[0].version
		holes := last + 1 - int64(len(*places))
		if holes > int64(len(crashed)) {
			return versionAnswer{versionsGap, noOp, noOp}
		}
		*places = withHoles(*places, int(holes))
		blind += int(holes)
	}
	if blind == 0 {
		return versionAnswer{}
	}
	var any []int32
	for value, list := range spare { // sorted below
		if len(list) > 0 && wanted[value] > 0 {
			return versionAnswer{versionsUndecided, noOp, noOp}
		}
		any = append(any, list...)
	}
	if blind > len(any) {
		return versionAnswer{versionsGap, noOp, noOp}
	}
	slices.SortFunc(any, func(a, b int32) int { return cmp.Compare(ops[a].Call, ops[b].Call) })
	for k := range *places {
		if p := &(*places)[k]; p.write == noOp && !p.beforeHand {
			p.write, any = any[0], any[1:]
		}
	}
	return versionAnswer{}
}

// withHoles puts a place at every version that nobody told.
func withHoles(places []versionPlace, holes int) []versionPlace {
	if holes == 0 {
		return places
	}
	out := make([]versionPlace, 0, len(places)+holes)
	for _, p := range places {
		for len(out) > 0 && out[len(out)-1].version+1 < p.version {
			out = append(out, versionPlace{version: out[len(out)-1].version + 1, write: noOp, value: unknownValue, read: noOp, first: noOp, last: noOp, valueFrom: noOp})
		}
		out = append(out, p)
	}
	return out
}

// versionOrder goes along the versions with the largest call so far.
func versionOrder(ops []versionOp, places []versionPlace) versionAnswer {
	high, highOp := noCall, noOp
	for _, p := range places {
		for _, group := range [2][2]int32{{p.write, p.write}, {p.first, p.last}} {
			if group[0] != noOp && ops[group[0]].Ret < high {
				return versionAnswer{versionsOrder, group[0], highOp}
			}
			if group[1] != noOp && ops[group[1]].Call > high {
				high, highOp = ops[group[1]].Call, group[1]
			}
		}
	}
	return versionAnswer{}
}
