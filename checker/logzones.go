package checker

import "slices"

// An append-only log with offsets is decided in linear time: the offsets fix the
// order of the appends, a log end that a fetch reports fixes its place between
// them, and what is left to check is that this order does not contradict real
// time.
//
// Every append has the key of its end offset; a strong fetch, which reports the
// log end E, has the key E and comes after the append that ends there. Keys are
// offsets, so grouping them is bucketing. The log is linearizable iff no
// operation of a later group returned before one of an earlier group was called.
// A weak fetch (records, but no end) only says that the log is at least so long:
// it needs no place in the order, and is wrong iff it returned before some
// operation up to the append of its last record was called. An empty fetch at an
// offset says that the log reaches that far.
//
// An append of unknown outcome that was seen gets its place from the records; one
// that was not is left out, unless offsets below the known end have no owner: then
// unseen appends must fill the gaps, and if all have one size they are given out
// in order of their calls, which is exact because nothing else tells them apart.
// Gaps with unseen appends of several sizes are undecided.

// logKind is what an operation on a log does.
type logKind uint8

const (
	logAppend logKind = iota
	logFetch
)

// unknownOffset stands for a base or an end that nobody reported.
const unknownOffset = int64(-1)

// logOp is an operation on a log. Records First..First+Count-1 of the arena are
// those appended, or fetched from Offset on. Offset is an append's base, unknown
// for a crashed one; End is the log end that a strong fetch reports.
type logOp struct {
	Call, Ret int32
	Kind      logKind
	Count     int32
	First     int32
	Offset    int64
	End       int64
}

// logFault is what the check found.
type logFault uint8

const (
	logLegal     logFault = iota
	logUndecided          // gaps, and unseen appends of several sizes
	logRepeated           // a record is appended twice: the check does not apply
	logUnwritten          // a record was fetched that nobody appended
	logTwoOwners          // two records at one offset
	logTwoPlaces          // one record at two offsets: a duplicate
	logTorn               // a batch is not at consecutive offsets, or an end lies inside one
	logGap                // an offset below the end that no append can own
	logOrder              // the order of offsets contradicts real time
)

// logAnswer is the answer with the operations and the offset that it rests on;
// noOp where there is none.
type logAnswer struct {
	fault  logFault
	a, b   int32
	offset int64
}

func (l logAnswer) answer() answer {
	switch l.fault {
	case logLegal:
		return legal
	case logUndecided, logRepeated:
		return notAsked
	default:
		return illegal
	}
}

// logger holds the algorithm's buffers.
type logger struct {
	ops     []logOp
	records []int32
	home    []int32 // by record: its append
	place   []int32 // by record: its offset, noOp as long as nobody told
	base    []int64 // by append (operation index): where it starts, or unknownOffset
	owner   []int32 // by offset: the append
	// high is, by offset, the largest call of all operations with a key up to it,
	// and highOp the operation that it is of.
	high   []int32
	highOp []int32
}

// judge decides a log. The arena holds record numbers 0..count-1; positions are
// as in zoner.judge.
func (l *logger) judge(ops []logOp, records []int32, count int) logAnswer {
	l.ops, l.records = ops, records
	if bad, ok := l.homes(count); !ok {
		return bad
	}
	if bad, ok := l.places(); !ok {
		return bad
	}
	if bad, ok := l.own(); !ok {
		return bad
	}
	if bad, ok := l.gaps(); !ok {
		return bad
	}
	if bad, ok := l.content(); !ok {
		return bad
	}
	return l.order()
}

// homes finds the append of every record; not ok if one is appended twice.
func (l *logger) homes(count int) (logAnswer, bool) {
	l.home = slices.Grow(l.home[:0], count)[:count]
	l.place = slices.Grow(l.place[:0], count)[:count]
	for i := range l.home {
		l.home[i], l.place[i] = noOp, noOp
	}
	l.base = slices.Grow(l.base[:0], len(l.ops))[:len(l.ops)]
	for i := range l.ops {
		op := &l.ops[i]
		l.base[i] = unknownOffset
		if op.Kind != logAppend {
			continue
		}
		l.base[i] = op.Offset
		for _, r := range l.records[op.First : op.First+op.Count] {
			if l.home[r] != noOp {
				return logAnswer{fault: logRepeated, a: l.home[r], b: int32(i)}, false
			}
			l.home[r] = int32(i)
		}
		if op.Offset != unknownOffset {
			l.put(int32(i))
		}
	}
	return logAnswer{}, true
}

// put tells the records of an append their offsets.
func (l *logger) put(i int32) {
	op := &l.ops[i]
	for k, r := range l.records[op.First : op.First+op.Count] {
		l.place[r] = int32(l.base[i]) + int32(k)
	}
}

// places takes the place of every fetched record, and so of its whole append.
func (l *logger) places() (logAnswer, bool) {
	for i := range l.ops {
		op := &l.ops[i]
		if op.Kind != logFetch {
			continue
		}
		for k, r := range l.records[op.First : op.First+op.Count] {
			at := op.Offset + int64(k)
			if int64(l.place[r]) == at {
				continue
			}
			home := l.home[r]
			if home == noOp {
				return logAnswer{fault: logUnwritten, a: int32(i), b: noOp, offset: at}, false
			}
			batch := &l.ops[home]
			base := at - int64(slices.Index(l.records[batch.First:batch.First+batch.Count], r))
			if l.base[home] != unknownOffset || base < 0 {
				return logAnswer{fault: logTwoPlaces, a: int32(i), b: home, offset: at}, false
			}
			l.base[home] = base
			l.put(home)
		}
	}
	return logAnswer{}, true
}

// own gives the offsets to the appends, up to the largest known end.
func (l *logger) own() (logAnswer, bool) {
	end := int64(0)
	for i := range l.ops {
		op := &l.ops[i]
		if op.Kind == logFetch && op.End != unknownOffset {
			end = max(end, op.End)
		} else if op.Kind == logFetch {
			end = max(end, op.Offset+int64(op.Count))
		} else if l.base[i] != unknownOffset {
			end = max(end, l.base[i]+int64(op.Count))
		}
	}
	// No log can be longer than what was appended: a hostile offset must not
	// make us ask for the memory.
	total := int64(0)
	for i := range l.ops {
		if l.ops[i].Kind == logAppend {
			total += int64(l.ops[i].Count)
		}
	}
	if end > total {
		return logAnswer{fault: logGap, a: noOp, b: noOp, offset: total}, false
	}
	l.owner = slices.Grow(l.owner[:0], int(end))[:end]
	for i := range l.owner {
		l.owner[i] = noOp
	}
	for i := range l.ops {
		if l.ops[i].Kind != logAppend || l.base[i] == unknownOffset {
			continue
		}
		if bad, ok := l.give(int32(i), l.base[i]); !ok {
			return bad, false
		}
	}
	return logAnswer{}, true
}

func (l *logger) give(i int32, base int64) (logAnswer, bool) {
	l.base[i] = base
	for o := base; o < base+int64(l.ops[i].Count); o++ {
		if l.owner[o] != noOp {
			return logAnswer{fault: logTwoOwners, a: l.owner[o], b: i, offset: o}, false
		}
		l.owner[o] = i
	}
	return logAnswer{}, true
}

// gaps fills offsets without an owner with unseen appends of unknown outcome.
func (l *logger) gaps() (logAnswer, bool) {
	if !slices.Contains(l.owner, noOp) {
		return logAnswer{}, true
	}
	var unseen []int32 // in order of call, as the operations are
	size, mixed := int32(0), false
	for i := range l.ops {
		if op := &l.ops[i]; op.Kind == logAppend && l.base[i] == unknownOffset {
			mixed = mixed || size != 0 && size != op.Count
			size = op.Count
			unseen = append(unseen, int32(i))
		}
	}
	slices.SortFunc(unseen, func(a, b int32) int { return int(l.ops[a].Call) - int(l.ops[b].Call) })
	for o := 0; o < len(l.owner); o++ {
		if l.owner[o] != noOp {
			continue
		}
		switch {
		case len(unseen) == 0:
			return logAnswer{fault: logGap, a: noOp, b: noOp, offset: int64(o)}, false
		case mixed:
			return logAnswer{fault: logUndecided, a: noOp, b: noOp, offset: int64(o)}, false
		}
		// An empty fetch only says that the log is at least so long: the batch may
		// reach beyond what is known. An end that lies inside it shows in content.
		for len(l.owner) < o+int(size) {
			l.owner = append(l.owner, noOp)
		}
		if bad, ok := l.give(unseen[0], int64(o)); !ok {
			return bad, false
		}
		unseen = unseen[1:]
	}
	return logAnswer{}, true
}

// content compares fetches with what the offsets hold: a record that is missing
// from a fetch shows as another record at its offset, which places has seen; an
// end inside a batch shows here.
func (l *logger) content() (logAnswer, bool) {
	for i := range l.ops {
		op := &l.ops[i]
		if op.Kind != logFetch || op.End == unknownOffset {
			continue
		}
		if e := op.End; e > 0 && e < int64(len(l.owner)) && l.owner[e-1] == l.owner[e] {
			return logAnswer{fault: logTorn, a: int32(i), b: l.owner[e], offset: e}, false
		}
		if op.Count > 0 && op.Offset+int64(op.Count) > op.End {
			return logAnswer{fault: logTorn, a: int32(i), b: noOp, offset: op.End}, false
		}
	}
	return logAnswer{}, true
}

// logEdge is the smallest return and the largest call of a group, and of whom.
type logEdge struct{ ret, call, retOp, callOp int32 }

func (e *logEdge) widen(i int, op *logOp) {
	if op.Ret < e.ret {
		e.ret, e.retOp = op.Ret, int32(i)
	}
	if op.Call > e.call {
		e.call, e.callOp = op.Call, int32(i)
	}
}

// edges gathers the groups of appends and of strong fetches by key.
func (l *logger) edges(keys int) (appends, fetches []logEdge) {
	appends, fetches = make([]logEdge, keys), make([]logEdge, keys)
	for k := range keys {
		appends[k] = logEdge{noReturn, noCall, noOp, noOp}
		fetches[k] = appends[k]
	}
	for i := range l.ops {
		op := &l.ops[i]
		switch {
		case op.Kind == logAppend && l.base[i] != unknownOffset:
			appends[l.base[i]+int64(op.Count)].widen(i, op)
		case op.Kind == logFetch && op.End != unknownOffset:
			fetches[op.End].widen(i, op)
		}
	}
	return appends, fetches
}

// order checks the groups against real time: one pass to gather each group's
// smallest return and largest call, one along the offsets with the running
// largest call, one for the weak fetches.
func (l *logger) order() logAnswer {
	keys := len(l.owner) + 1
	appends, fetches := l.edges(keys)
	l.high = slices.Grow(l.high[:0], keys)[:keys]
	l.highOp = slices.Grow(l.highOp[:0], keys)[:keys]
	high, highOp := noCall, noOp
	for k := range keys {
		for n, e := range [2]logEdge{appends[k], fetches[k]} {
			if e.ret < high {
				return logAnswer{fault: logOrder, a: e.retOp, b: highOp, offset: int64(k)}
			}
			if e.call > high {
				high, highOp = e.call, e.callOp
			}
			if n == 0 { // a weak fetch may stand between the append and the fetches of its end
				l.high[k], l.highOp[k] = high, highOp
			}
		}
	}
	return l.weak()
}

// weak judges the fetches that report no end.
func (l *logger) weak() logAnswer {
	for i := range l.ops {
		op := &l.ops[i]
		if op.Kind != logFetch || op.End != unknownOffset {
			continue
		}
		least := op.Offset + int64(op.Count)
		for least > 0 && least < int64(len(l.owner)) && l.owner[least-1] == l.owner[least] {
			least++ // a batch is there as a whole or not at all
		}
		if op.Ret < l.high[least] {
			return logAnswer{fault: logOrder, a: int32(i), b: l.highOp[least], offset: least}
		}
	}
	return logAnswer{fault: logLegal}
}
