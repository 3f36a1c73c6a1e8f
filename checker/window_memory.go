package checker

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"
)

// deadEnds is a set of nodes: open addressing with the exact nodes as keys, since
// a Go map would take three times the memory.
type deadEnds[M windowMask] struct {
	table []windowNode[M] // r is one more than the node's, so that zero is free
	count int
}

func (d *deadEnds[M]) bytes() int64 {
	return int64(len(d.table)) * int64(unsafe.Sizeof(windowNode[M]{}))
}

func (n *windowNode[M]) hash() uint64 {
	h := uint64(uint32(n.r))<<32 | uint64(uint32(n.state))
	h = (h ^ uint64(uint32(n.crashed))<<17) * 0x9e3779b97f4a7c15
	for i := range len(n.mask) {
		h ^= h >> 29
		h = (h ^ n.mask[i]) * 0xbf58476d1ce4e5b9
	}
	h ^= h >> 32
	return h
}

// find gives the place of a node, or the free place for it.
func (d *deadEnds[M]) find(n windowNode[M]) int {
	mask := uint64(len(d.table) - 1)
	for i := n.hash() & mask; ; i = (i + 1) & mask {
		if d.table[i].r == 0 || d.table[i] == n {
			return int(i)
		}
	}
}

func (d *deadEnds[M]) has(n windowNode[M]) bool {
	if d.count == 0 {
		return false
	}
	n.r++
	return d.table[d.find(n)].r != 0
}

func (d *deadEnds[M]) add(n windowNode[M]) {
	if 4*(d.count+1) > 3*len(d.table) {
		old := d.table
		d.table = make([]windowNode[M], max(2*len(old), 64))
		for _, o := range old {
			if o.r != 0 {
				d.table[d.find(o)] = o
			}
		}
	}
	n.r++
	if i := d.find(n); d.table[i].r == 0 {
		d.table[i] = n
		d.count++
	}
}

// crashes are the operations of unknown outcome, by class. Which of them a node
// has used is a vector of counts; vectors are numbered, so that a node stays small.
type crashes struct {
	ops     []int32
	classes [][]int32 // operations of a class by call
	of      map[int32]int
	calls   []windowOp
	vectors []string
	number  map[string]int32
}

func (c *crashes) prepare(ops []windowOp, spec windowSpec) {
	c.calls, c.of, c.number = ops, map[int32]int{}, map[string]int32{}
	slices.SortFunc(c.ops, func(a, b int32) int { return cmp.Compare(ops[a].Call, ops[b].Call) })
	byClass := map[int32]int{}
	for _, o := range c.ops {
		k, known := byClass[spec.class(o)]
		if !known {
			k = len(c.classes)
			byClass[spec.class(o)] = k
			c.classes = append(c.classes, nil)
		}
		c.of[o] = k
		c.classes[k] = append(c.classes[k], o)
	}
	c.vector(make([]byte, 4*len(c.classes)))
}

func (c *crashes) vector(counts []byte) int32 {
	if n, ok := c.number[string(counts)]; ok {
		return n
	}
	n := int32(len(c.vectors))
	c.vectors = append(c.vectors, string(counts))
	c.number[string(counts)] = n
	return n
}

// each gives the next unused operation of every class that was called before a
// return.
func (c *crashes) each(vector, until int32, offer func(o int32)) {
	if len(c.classes) == 0 {
		return
	}
	counts := c.vectors[vector]
	for k, class := range c.classes {
		used := int(binary.LittleEndian.Uint32([]byte(counts[4*k : 4*k+4])))
		if used < len(class) && c.calls[class[used]].Call < until {
			offer(class[used])
		}
	}
}

// use gives the vector with one more of the operation's class.
func (c *crashes) use(vector, o int32) int32 {
	counts := []byte(c.vectors[vector])
	k := 4 * c.of[o]
	binary.LittleEndian.PutUint32(counts[k:], binary.LittleEndian.Uint32(counts[k:])+1)
	return c.vector(counts)
}
