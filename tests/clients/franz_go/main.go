// A client on franz-go that does one thing, for tests.
//
//	franz_go_clients COMMAND BOOTSTRAP KEY=VALUE...
//
// produce     topic, partitions, first, count: numbers to partitions in turn, acknowledged
// consume     topic, group, balancer, instance, protocol: prints "owned P..." after each rebalance
//
//	and "record P N" for each record; commits what it polled before it lets others rebalance, and
//	leaves when standard input ends; protocol=consumer asks for the new protocol
//
// transact    topic, group, source: a committed, an aborted and a committed transaction by a
//
//	GroupTransactSession, each for one polled record
//
// admin       topic, group: creates, describes, lags, alters, deletes
//
// max_versions=0.10.2 caps every request; what goes wrong ends it with status 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

const patience = 60 * time.Second

type settings map[string]string

func (given settings) number(name string) int {
	value, err := strconv.Atoi(given[name])
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(holds bool, what string, found any) {
	if !holds {
		must(fmt.Errorf("%s: %v", what, found))
	}
}

func options(bootstrap string, given settings) []kgo.Opt {
	made := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.MetadataMinAge(50 * time.Millisecond),
	}
	if given["max_versions"] == "0.10.2" {
		made = append(made, kgo.MaxVersions(kversion.V0_10_2()), kgo.DisableIdempotentWrite())
	}
	return made
}

func inGroup(given settings) []kgo.Opt {
	balancers := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	made := []kgo.Opt{
		kgo.ConsumerGroup(given["group"]),
		kgo.Balancers(balancers[given["balancer"]]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(200 * time.Millisecond),
		kgo.SessionTimeout(10 * time.Second),
		kgo.FetchMaxWait(50 * time.Millisecond),
		kgo.DisableAutoCommit(),
	}
	if instance := given["instance"]; instance != "" {
		made = append(made, kgo.InstanceID(instance))
	}
	if given["protocol"] == "consumer" {
		made = append(made, kgo.ServerSideBalancer())
	}
	return made
}

func produce(ctx context.Context, bootstrap string, given settings) {
	client, err := kgo.NewClient(append(options(bootstrap, given),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(err)
	defer client.Close()
	partitions := given.number("partitions")
	var records []*kgo.Record
	for number := given.number("first"); number < given.number("first")+given.number("count"); number++ {
		records = append(records, &kgo.Record{
			Topic:     given["topic"],
			Partition: int32(number % partitions),
			Value:     []byte(strconv.Itoa(number)),
		})
	}
	must(client.ProduceSync(ctx, records...).FirstErr())
}

type ownership struct {
	partitions []int32
}

func (owned *ownership) gained(_ context.Context, _ *kgo.Client, places map[string][]int32) {
	for _, partitions := range places {
		owned.partitions = append(owned.partitions, partitions...)
	}
	owned.tell()
}

func (owned *ownership) lost(_ context.Context, _ *kgo.Client, places map[string][]int32) {
	for _, partitions := range places {
		owned.partitions = slices.DeleteFunc(owned.partitions, func(each int32) bool {
			return slices.Contains(partitions, each)
		})
	}
	owned.tell()
}

func (owned *ownership) tell() {
	slices.Sort(owned.partitions)
	fmt.Println("owned", strings.Trim(fmt.Sprint(owned.partitions), "[]"))
}

// Reads records until standard input ends; then commits and leaves.
func consume(ctx context.Context, bootstrap string, given settings) {
	owned := &ownership{}
	client, err := kgo.NewClient(append(append(options(bootstrap, given), inGroup(given)...),
		kgo.ConsumeTopics(given["topic"]),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(owned.gained),
		kgo.OnPartitionsRevoked(owned.lost),
		kgo.OnPartitionsLost(owned.lost))...)
	must(err)
	polling, stop := context.WithCancel(ctx)
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		stop()
	}()
	for polling.Err() == nil {
		fetches := client.PollFetches(polling)
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.Canceled) {
				must(err)
			}
		})
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println("record", record.Partition, string(record.Value))
		})
		if fetches.NumRecords() > 0 {
			must(client.CommitRecords(ctx, fetches.Records()...))
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}

// Copies one record a transaction, and aborts the second one before it tries again.
func transact(ctx context.Context, bootstrap string, given settings) {
	session, err := kgo.NewGroupTransactSession(append(append(options(bootstrap, given),
		inGroup(given)...),
		kgo.ConsumeTopics(given["source"]),
		kgo.DefaultProduceTopic(given["topic"]),
		kgo.TransactionalID("franz"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets())...)
	must(err)
	defer session.Close()
	for round := 0; round < 3; {
		records := session.PollRecords(ctx, 1).Records()
		if len(records) == 0 {
			must(ctx.Err())
			continue
		}
		must(session.Begin())
		must(session.ProduceSync(ctx, &kgo.Record{Value: records[0].Value}).FirstErr())
		committed, err := session.End(ctx, kgo.TransactionEndTry(round != 1))
		must(err)
		fmt.Println("transaction", string(records[0].Value), committed)
		round++
	}
}

func admin(ctx context.Context, bootstrap string, given settings) {
	client, err := kgo.NewClient(options(bootstrap, given)...)
	must(err)
	asking := kadm.NewClient(client)
	defer asking.Close()
	topic, group := given["topic"], given["group"]
	_, err = asking.CreateTopic(ctx, 4, 1, map[string]*string{"retention.ms": kadm.StringPtr("60000")}, topic)
	must(err)
	_, err = asking.CreateTopic(ctx, 4, 1, nil, topic)
	check(errors.Is(err, kerr.TopicAlreadyExists), "second creation", err)
	details, err := asking.ListTopics(ctx, topic)
	must(err)
	check(len(details[topic].Partitions) == 4, "partitions", details)
	produce(ctx, bootstrap, settings{
		"topic": topic, "partitions": "4", "first": "0", "count": "40",
		"max_versions": given["max_versions"],
	})
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: topic, Partition: 1, At: 4, LeaderEpoch: -1})
	must(asking.CommitAllOffsets(ctx, group, offsets))
	lags, err := asking.Lag(ctx, group)
	must(err)
	must(lags.Error())
	check(lags[group].State == "Empty", "state", lags[group].State)
	fmt.Println("lag", lags[group].Lag[topic][1].Lag)
	ends, err := asking.ListEndOffsets(ctx, topic)
	must(err)
	found, _ := ends.Lookup(topic, 3)
	check(found.Offset == 10, "end", found)
	listed, err := asking.ListGroups(ctx)
	must(err)
	check(slices.Equal(listed.Groups(), []string{group}), "groups", listed)
	if given["max_versions"] == "" {
		newer(ctx, asking, topic, group)
	}
	deleted, err := asking.DeleteTopics(ctx, topic)
	must(err)
	must(deleted[topic].Err)
	fmt.Println("done")
}

// What brokers of 0.10.2 have not.
func newer(ctx context.Context, asking *kadm.Client, topic, group string) {
	created, err := asking.CreatePartitions(ctx, 2, topic)
	must(err)
	must(created[topic].Err)
	configs, err := asking.DescribeTopicConfigs(ctx, topic)
	must(err)
	for _, config := range configs[0].Configs {
		if config.Key == "retention.ms" {
			check(config.MaybeValue() == "60000", "retention", config)
		}
	}
	_, err = asking.AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("70000")},
	}, topic)
	must(err)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 6})
	removed, err := asking.DeleteRecords(ctx, offsets)
	must(err)
	must(removed.Error())
	found, _ := removed.Lookup(topic, 0)
	check(found.LowWatermark == 6, "low watermark", found)
	cluster, err := asking.BrokerMetadata(ctx)
	must(err)
	check(len(cluster.Brokers) == 1, "brokers", cluster)
	gone, err := asking.DeleteGroups(ctx, group)
	must(err)
	must(gone.Error())
}

func main() {
	commands := map[string]func(context.Context, string, settings){
		"produce": produce, "consume": consume, "transact": transact, "admin": admin,
	}
	given := settings{"balancer": "cooperative-sticky"}
	for _, argument := range os.Args[3:] {
		name, value, _ := strings.Cut(argument, "=")
		given[name] = value
	}
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	commands[os.Args[1]](ctx, os.Args[2], given)
}
