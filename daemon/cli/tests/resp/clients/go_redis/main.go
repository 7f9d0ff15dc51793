// Prints the replies that go-redis gets, one per line: go_redis RESP PORT TOKEN-PORT TOKEN
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func connect(port string, change func(*redis.Options)) *redis.Client {
	protocol, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	// A failure ends the run instead of being retried.
	options := &redis.Options{Addr: "127.0.0.1:" + port, Protocol: protocol, MaxRetries: -1}
	if change != nil {
		change(options)
	}
	return redis.NewClient(options)
}

// The fields of a decision: a flat list, or a map of RESP3.
func shown(reply any, err error) string {
	if err != nil {
		return failure(err)
	}
	fields := map[string]any{}
	switch reply := reply.(type) {
	case map[any]any:
		for name, value := range reply {
			fields[name.(string)] = value
		}
	case []any:
		for at := 0; at+1 < len(reply); at += 2 {
			fields[reply[at].(string)] = reply[at+1]
		}
	}
	allowed := 0
	if fields["allowed"] == true || fields["allowed"] == int64(1) {
		allowed = 1
	}
	return fmt.Sprintf("%d %v of %v", allowed, fields["remaining"], fields["capacity"])
}

// Other tests check the hint after the semicolon.
func failure(err error) string {
	if err == nil {
		return "no failure"
	}
	text, _, _ := strings.Cut(err.Error(), ";")
	return text
}

func handshake(client *redis.Client) {
	fmt.Println("ping", client.Ping(ctx).Val(), client.Echo(ctx, "hello").Val())
	named := connect(os.Args[2], func(options *redis.Options) { options.ClientName = "shop" })
	defer named.Close()
	fmt.Println("named", named.ClientGetName(ctx).Val())
	selected := connect(os.Args[2], func(options *redis.Options) { options.DB = 1 })
	defer selected.Close()
	fmt.Println("database 1", failure(selected.Ping(ctx).Err()))
	options, err := redis.ParseURL("redis://127.0.0.1:" + os.Args[2] + "/0")
	if err != nil {
		panic(err)
	}
	byURL := redis.NewClient(options)
	defer byURL.Close()
	fmt.Println("by URL", byURL.Ping(ctx).Val())
}

func throttle(client *redis.Client) {
	call := func(words ...any) any {
		return client.Do(ctx, append([]any{"CL.THROTTLE", "user", 15, 30, 3600}, words...)...).Val()
	}
	fmt.Println("fresh", call())
	fmt.Println("denied", call(16).([]any)[0])
	fmt.Println("exists", client.Exists(ctx, "user").Val(), client.Del(ctx, "user").Val())
	key := make([]byte, 256)
	for at := range key {
		key[at] = byte(at)
	}
	for _, bytes := range [][]byte{key, key, key[:255]} {
		fmt.Println("key", shown(client.Do(ctx, "TOLLGATE.CHECK", "api", bytes).Result()))
	}
}

func pipelines(client *redis.Client) {
	pipeline := client.Pipeline()
	for range 1500 {
		pipeline.Do(ctx, "TOLLGATE.CHECK", "many", "pipeline")
	}
	commands, err := pipeline.Exec(ctx)
	allowed := 0
	isDescending := true
	for _, command := range commands {
		reply := shown(command.(*redis.Cmd).Result())
		if strings.HasPrefix(reply, "1 ") {
			isDescending = isDescending && reply == fmt.Sprintf("1 %d of 1000", 999-allowed)
			allowed++
		}
	}
	fmt.Println("in order", isDescending, allowed, len(commands), err)
	for _, transaction := range []bool{false, true} {
		pipeline := client.Pipeline()
		name := "pipeline"
		if transaction {
			pipeline, name = client.TxPipeline(), "transaction"
		}
		for _, policy := range []string{"api", "no-such-policy", "api"} {
			pipeline.Do(ctx, "TOLLGATE.CHECK", policy, name)
		}
		commands, _ := pipeline.Exec(ctx)
		for _, command := range commands {
			fmt.Println(name, shown(command.(*redis.Cmd).Result()))
		}
	}
}

func parallel(client *redis.Client) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	allowed := 0
	for range 20 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 75 {
				reply := shown(client.Do(ctx, "TOLLGATE.CHECK", "many", "parallel").Result())
				if strings.HasPrefix(reply, "1 ") {
					mutex.Lock()
					allowed++
					mutex.Unlock()
				}
			}
		}()
	}
	group.Wait()
	fmt.Println("through a pool", allowed)
}

func tokens() {
	check := func(name, user, password string) {
		client := connect(os.Args[3], func(options *redis.Options) {
			options.Username, options.Password = user, password
		})
		defer client.Close()
		reply := shown(client.Do(ctx, "TOLLGATE.CHECK", "api", "t").Result())
		if word, _, _ := strings.Cut(reply, " "); strings.ToUpper(word) == word && len(word) > 1 {
			reply = word
		}
		fmt.Println(name, reply)
	}
	check("the token:", "", os.Args[4])
	check("by its name:", "gateway", os.Args[4])
	check("another:", "", "guessed")
	check("no token:", "", "")
}

func main() {
	if len(os.Args) != 5 {
		panic(errors.New("go_redis RESP PORT TOKEN-PORT TOKEN"))
	}
	client := connect(os.Args[2], nil)
	handshake(client)
	throttle(client)
	pipelines(client)
	parallel(client)
	fmt.Println("unknown", shown(client.Do(ctx, "TOLLGATE.CHECK", "no-such-policy", "k").Result()))
	tokens()
	fmt.Println("closed", client.Close())
}
