// Command loadgen loads one broker with the requests of group members, as it is told on stdin.
//
// Every line of stdin is a command, every line of stdout its result as JSON. Frames are encoded
// once, correlation ids and error codes are checked; the first error ends the program.
//
//	form GROUPS CONNECTIONS           single-member groups, spread over the connections
//	run heartbeat|commit|fetch IN_FLIGHT SECONDS
//	rebalance MEMBERS ROUNDS          one group, one connection a member
//	hold CONNECTIONS SECONDS          more connections, each sends heartbeats
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const patience = 60 * time.Second

type member struct {
	group, id  string
	generation int32
}

type conn struct {
	net.Conn
	in      *bufio.Reader
	lastID  uint32
	members []*member
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func dial(address string) *conn {
	found := must(net.DialTimeout("tcp", address, patience))
	return &conn{Conn: found, in: bufio.NewReaderSize(found, 1<<16)}
}

func (c *conn) send(data []byte) uint32 {
	c.lastID++
	binary.BigEndian.PutUint32(data[8:], c.lastID)
	must(c.Write(data))
	return c.lastID
}

func (c *conn) receive(id uint32) []byte {
	var size [4]byte
	c.SetReadDeadline(time.Now().Add(patience))
	must(io.ReadFull(c.in, size[:]))
	data := make([]byte, binary.BigEndian.Uint32(size[:]))
	must(io.ReadFull(c.in, data))
	if got := binary.BigEndian.Uint32(data); got != id {
		log.Fatalf("correlation id %d, expected %d", got, id)
	}
	return data
}

func (c *conn) ask(data []byte) *answer { return &answer{c.receive(c.send(data)), 4} }

// prepare creates the topic, and waits until groups are taken.
func prepare(c *conn) {
	a := c.ask(topicFrame())
	a.at += 8
	a.text()
	if code := a.int16(); code != noError && code != topicExists {
		log.Fatalf("CreateTopics: error code %d", code)
	}
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		a := c.ask(coordinatorFrame("bench-0"))
		a.at += 4
		if a.int16() == noError {
			break
		}
		if time.Now().After(until) {
			log.Fatal("no coordinator")
		}
	}
}

type joined struct {
	generation int32
	leader, id string
	members    []string
	code       int16
}

func readJoined(data []byte) joined {
	a := &answer{data, 8}
	j := joined{code: a.int16(), generation: a.int32()}
	a.text()
	j.leader, j.id = a.text(), a.text()
	for range a.int32() {
		j.members = append(j.members, a.text())
		a.text()
		a.at += int(a.int32())
	}
	return j
}

// join sends JoinGroup until it is answered without an error that goes away.
func (c *conn) join(m *member, metadata []byte) joined {
	const idRequired, loading, unavailable, notCoordinator = 79, 14, 15, 16
	for until := time.Now().Add(patience); ; {
		j := readJoined(c.receive(c.send(joinFrame(m.group, m.id, metadata))))
		switch j.code {
		case noError:
			m.id, m.generation = j.id, j.generation
			return j
		case idRequired:
			m.id = j.id
		case loading, unavailable, notCoordinator, rebalancing:
			time.Sleep(50 * time.Millisecond)
		default:
			log.Fatalf("JoinGroup: error code %d", j.code)
		}
		if time.Now().After(until) {
			log.Fatalf("JoinGroup: still error code %d", j.code)
		}
	}
}

func (c *conn) sync(m *member, assigned []string) {
	a := c.ask(syncFrame(m.group, m.generation, m.id, assigned))
	a.at += 4
	if code := a.int16(); code != noError {
		log.Fatalf("SyncGroup: error code %d", code)
	}
}

func each[T any](all []T, do func(int, T)) {
	var done sync.WaitGroup
	for index, one := range all {
		done.Add(1)
		go func() { defer done.Done(); do(index, one) }()
	}
	done.Wait()
}

// form makes the groups of every connection.
func form(address string, groups, connections int) []*conn {
	conns := make([]*conn, connections)
	for index := range conns {
		conns[index] = dial(address)
	}
	prepare(conns[0])
	each(conns, func(index int, c *conn) {
		for number := index; number < groups; number += connections {
			m := &member{group: fmt.Sprintf("bench-%d", number)}
			c.join(m, make([]byte, 32))
			c.sync(m, []string{m.id})
			c.members = append(c.members, m)
		}
	})
	return conns
}

type figures struct {
	Requests int     `json:"requests"`
	WallS    float64 `json:"wall_s"`
	P50Us    float64 `json:"p50_us"`
	P99Us    float64 `json:"p99_us"`
}

func summary(all [][]time.Duration, took time.Duration) figures {
	flat := slices.Concat(all...)
	slices.Sort(flat)
	at := func(part float64) float64 {
		if len(flat) == 0 {
			return 0
		}
		return float64(flat[int(part*float64(len(flat)-1))].Nanoseconds()) / 1e3
	}
	return figures{len(flat), took.Seconds(), at(0.5), at(0.99)}
}

var kinds = map[string]struct {
	api  int16
	make func(*member) []byte
}{
	"heartbeat": {heartbeat, heartbeatFrame},
	"commit":    {offsetCommit, commitFrame},
	"fetch":     {offsetFetch, fetchFrame},
}

// run sends one kind of request over every connection, so many in flight on each.
func run(conns []*conn, kind string, inFlight int, lasting time.Duration) figures {
	what, known := kinds[kind]
	if !known {
		log.Fatalf("no request is called %q", kind)
	}
	took := make([][]time.Duration, len(conns))
	start := time.Now()
	end := start.Add(lasting)
	each(conns, func(index int, c *conn) {
		frames := make([][]byte, len(c.members))
		for place, m := range c.members {
			frames[place] = what.make(m)
		}
		var sent []time.Time
		next, place := c.lastID+1, 0
		send := func(count int) {
			var together []byte
			for range count {
				c.lastID++
				frame := frames[place%len(frames)]
				binary.BigEndian.PutUint32(frame[8:], c.lastID)
				together = append(together, frame...)
				sent = append(sent, time.Now())
				place++
			}
			must(c.Write(together))
		}
		for send(inFlight); len(sent) > 0; {
			answered := 0
			for answered == 0 || (len(sent) > 0 && c.in.Buffered() > 0) {
				data := c.receive(next)
				took[index] = append(took[index], time.Since(sent[0]))
				sent = sent[1:]
				next++
				answered++
				if err := check(what.api, data); err != nil {
					log.Fatalf("%s: %v", kind, err)
				}
			}
			if time.Now().Before(end) {
				send(answered)
			}
		}
	})
	return summary(took, time.Since(start))
}

// rebalance forms one group and lets all members rejoin, round by round; a latency is a round's.
func rebalance(address string, size, rounds int) map[string]any {
	conns := make([]*conn, size)
	for index := range conns {
		conns[index] = dial(address)
	}
	prepare(conns[0])
	members := make([]*member, size)
	group := fmt.Sprintf("round-%d-%d", size, time.Now().UnixNano())
	for index := range members {
		members[index] = &member{group: group}
	}
	var whole atomic.Int32 // The generation that has all members.
	round := func(number int) time.Duration {
		start := time.Now()
		whole.Store(-1)
		metadata := binary.BigEndian.AppendUint32(make([]byte, 28), uint32(number))
		each(conns, func(index int, c *conn) {
			m := members[index]
			for {
				j := c.join(m, metadata)
				var assigned []string
				if j.leader == m.id {
					assigned = j.members
					if len(assigned) == size {
						whole.Store(m.generation)
					}
				}
				a := c.ask(syncFrame(group, m.generation, m.id, assigned))
				a.at += 4
				code := a.int16()
				for code == noError {
					if whole.Load() == m.generation {
						return
					}
					// Others are still to come: a heartbeat says when to join with them.
					time.Sleep(5 * time.Millisecond)
					code = (&answer{c.receive(c.send(heartbeatFrame(m))), 8}).int16()
				}
				if code != rebalancing {
					log.Fatalf("SyncGroup or Heartbeat: error code %d", code)
				}
			}
		})
		return time.Since(start)
	}
	formed := round(0)
	waitForWord()
	took := make([]time.Duration, rounds)
	start := time.Now()
	for number := range took {
		took[number] = round(number + 1)
	}
	result := summary([][]time.Duration{took}, time.Since(start))
	for _, c := range conns {
		c.Close()
	}
	return map[string]any{
		"formed_ms": formed.Milliseconds(), "round_ms": result.P50Us / 1e3, "wall_s": result.WallS,
	}
}

// hold opens connections and lets every one of them send heartbeats of the groups there are.
func hold(address string, conns []*conn, count int, lasting time.Duration) figures {
	var all []*member
	for _, c := range conns {
		all = append(all, c.members...)
	}
	held := make([]*conn, count)
	for index := range held {
		held[index] = dial(address)
		held[index].members = []*member{all[index%len(all)]}
	}
	waitForWord()
	took := make([][]time.Duration, count)
	start := time.Now()
	each(held, func(index int, c *conn) {
		frame := heartbeatFrame(c.members[0])
		for time.Since(start) < lasting {
			at := time.Now()
			if err := check(heartbeat, c.receive(c.send(frame))); err != nil {
				log.Fatalf("heartbeat: %v", err)
			}
			took[index] = append(took[index], time.Since(at))
			time.Sleep(time.Second)
		}
	})
	result := summary(took, time.Since(start))
	waitForWord()
	for _, c := range held {
		c.Close()
	}
	return result
}

var words = bufio.NewScanner(os.Stdin)

// waitForWord says that it is time to look at the server, and goes on at the next line.
func waitForWord() {
	fmt.Println("{}")
	if !words.Scan() {
		os.Exit(1)
	}
}

func main() {
	log.SetFlags(0)
	address := os.Args[1]
	var conns []*conn
	for words.Scan() {
		var verb, kind string
		var first, second int
		var result any = struct{}{}
		line := words.Text()
		fmt.Sscan(line, &verb)
		switch verb {
		case "form":
			must(fmt.Sscan(line, &verb, &first, &second))
			conns = form(address, first, second)
		case "run":
			must(fmt.Sscan(line, &verb, &kind, &first, &second))
			result = run(conns, kind, first, time.Duration(second)*time.Second)
		case "rebalance":
			must(fmt.Sscan(line, &verb, &first, &second))
			result = rebalance(address, first, second)
		case "hold":
			must(fmt.Sscan(line, &verb, &first, &second))
			result = hold(address, conns, first, time.Duration(second)*time.Second)
		default:
			log.Fatalf("no command %q", line)
		}
		fmt.Println(string(must(json.Marshal(result))))
	}
}
