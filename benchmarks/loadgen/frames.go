package main

// Requests as bytes, in versions without tagged fields, and the little that is read of answers.

import (
	"encoding/binary"
	"fmt"
)

const (
	offsetCommit = 8
	offsetFetch  = 9
	findCoord    = 10
	joinGroup    = 11
	heartbeat    = 12
	syncGroup    = 14
	createTopics = 19

	noError          = 0
	topicExists      = 36
	rebalancing      = 27
	topicName        = "bench"
	topicPartitions  = 10
	sessionTimeout   = 300_000 // The most that kfake takes.
	rebalanceTimeout = 60_000
)

type frame struct{ data []byte }

func request(api, version int16) *frame {
	f := &frame{make([]byte, 4, 256)}
	f.int16(api)
	f.int16(version)
	f.int32(0) // The correlation id, set when it is sent.
	f.text("loadgen")
	return f
}

func (f *frame) int16(v int16) { f.data = binary.BigEndian.AppendUint16(f.data, uint16(v)) }
func (f *frame) int32(v int32) { f.data = binary.BigEndian.AppendUint32(f.data, uint32(v)) }
func (f *frame) int64(v int64) { f.data = binary.BigEndian.AppendUint64(f.data, uint64(v)) }
func (f *frame) text(v string) { f.int16(int16(len(v))); f.data = append(f.data, v...) }
func (f *frame) raw(v []byte)  { f.int32(int32(len(v))); f.data = append(f.data, v...) }
func (f *frame) nothing()      { f.int16(-1) }
func (f *frame) sealed() []byte {
	binary.BigEndian.PutUint32(f.data, uint32(len(f.data)-4))
	return f.data
}

func topicFrame() []byte {
	f := request(createTopics, 4)
	f.int32(1)
	f.text(topicName)
	f.int32(topicPartitions)
	f.int16(1)
	f.int32(0)
	f.int32(0)
	f.int32(30_000)
	f.data = append(f.data, 0)
	return f.sealed()
}

func coordinatorFrame(group string) []byte {
	f := request(findCoord, 1)
	f.text(group)
	f.data = append(f.data, 0)
	return f.sealed()
}

func joinFrame(group, member string, metadata []byte) []byte {
	f := request(joinGroup, 5)
	f.text(group)
	f.int32(sessionTimeout)
	f.int32(rebalanceTimeout)
	f.text(member)
	f.nothing()
	f.text("consumer")
	f.int32(1)
	f.text("range")
	f.raw(metadata)
	return f.sealed()
}

func syncFrame(group string, generation int32, member string, assigned []string) []byte {
	f := request(syncGroup, 3)
	f.text(group)
	f.int32(generation)
	f.text(member)
	f.nothing()
	f.int32(int32(len(assigned)))
	for _, each := range assigned {
		f.text(each)
		f.raw(make([]byte, 32))
	}
	return f.sealed()
}

func heartbeatFrame(m *member) []byte {
	f := request(heartbeat, 3)
	f.text(m.group)
	f.int32(m.generation)
	f.text(m.id)
	f.nothing()
	return f.sealed()
}

func commitFrame(m *member) []byte {
	f := request(offsetCommit, 7)
	f.text(m.group)
	f.int32(m.generation)
	f.text(m.id)
	f.nothing()
	f.int32(1)
	f.text(topicName)
	f.int32(topicPartitions)
	for index := range int32(topicPartitions) {
		f.int32(index)
		f.int64(42)
		f.int32(-1)
		f.text("")
	}
	return f.sealed()
}

func fetchFrame(m *member) []byte {
	f := request(offsetFetch, 5)
	f.text(m.group)
	f.int32(1)
	f.text(topicName)
	f.int32(topicPartitions)
	for index := range int32(topicPartitions) {
		f.int32(index)
	}
	return f.sealed()
}

// answer reads a frame from its beginning; a short one panics, which ends the run.
type answer struct {
	data []byte
	at   int
}

func (a *answer) int16() int16 {
	a.at += 2
	return int16(binary.BigEndian.Uint16(a.data[a.at-2:]))
}

func (a *answer) int32() int32 {
	a.at += 4
	return int32(binary.BigEndian.Uint32(a.data[a.at-4:]))
}

func (a *answer) text() string {
	size := int(a.int16())
	if size < 0 {
		return ""
	}
	a.at += size
	return string(a.data[a.at-size : a.at])
}

// check says what is wrong with an answer of one of the steady requests.
func check(api int16, data []byte) error {
	a := &answer{data, 8} // Behind correlation id and throttle time.
	switch api {
	case heartbeat:
		return failed(a.int16())
	case offsetCommit:
		for range a.int32() {
			a.text()
			for range a.int32() {
				a.int32()
				if err := failed(a.int16()); err != nil {
					return err
				}
			}
		}
	case offsetFetch:
		for range a.int32() {
			a.text()
			for range a.int32() {
				a.at += 16
				a.text()
				if err := failed(a.int16()); err != nil {
					return err
				}
			}
		}
		return failed(a.int16())
	}
	return nil
}

func failed(code int16) error {
	if code != noError {
		return fmt.Errorf("error code %d", code)
	}
	return nil
}
