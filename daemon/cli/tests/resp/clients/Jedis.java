// Prints the replies that Jedis gets, one per line: Jedis.java RESP PORT TOKEN-PORT TOKEN

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.util.KeyValue;
import redis.clients.jedis.util.SafeEncoder;

public class Jedis {
  record Command(String name) implements ProtocolCommand {
    public byte[] getRaw() {
      return SafeEncoder.encode(name);
    }
  }

  static final Command THROTTLE = new Command("CL.THROTTLE");
  static final Command CHECK = new Command("TOLLGATE.CHECK");

  static RedisProtocol protocol;

  static DefaultJedisClientConfig.Builder config() {
    return DefaultJedisClientConfig.builder().protocol(protocol);
  }

  static RedisClient connect(String port, DefaultJedisClientConfig.Builder config) {
    return RedisClient.builder()
        .hostAndPort(new HostAndPort("127.0.0.1", Integer.parseInt(port)))
        .clientConfig(config.build())
        .build();
  }

  static Object decoded(Object value) {
    if (value instanceof byte[] bytes) {
      return SafeEncoder.encode(bytes);
    }
    if (value instanceof List<?> list) {
      return list.stream().map(Jedis::decoded).toList();
    }
    return value;
  }

  // The fields of a decision: a flat list, or a list of pairs of RESP3's map.
  static String shown(Object reply) {
    if (reply instanceof Exception error) {
      return failure(error);
    }
    Map<Object, Object> fields = new HashMap<>();
    List<?> list = (List<?>) reply;
    for (int at = 0; at < list.size(); at++) {
      if (list.get(at) instanceof KeyValue<?, ?> pair) {
        fields.put(decoded(pair.getKey()), decoded(pair.getValue()));
      } else {
        fields.put(decoded(list.get(at)), decoded(list.get(++at)));
      }
    }
    Object allowed = fields.get("allowed");
    boolean isAllowed = Boolean.TRUE.equals(allowed) || Long.valueOf(1).equals(allowed);
    return (isAllowed ? 1 : 0) + " " + fields.get("remaining") + " of " + fields.get("capacity");
  }

  // Other tests check the hint after the semicolon. The pool wraps failures to connect.
  static String failure(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause.getClass().getSimpleName() + ": " + cause.getMessage().split(";")[0];
  }

  static String failed(Supplier<String> call) {
    try {
      return call.get();
    } catch (RuntimeException error) {
      return failure(error);
    }
  }

  static void handshake(RedisClient client, String port) {
    System.out.println("ping " + client.ping() + " " + client.echo("hello"));
    try (RedisClient named = connect(port, config().clientName("shop"))) {
      Object name = named.sendCommand(new Command("CLIENT"), "GETNAME");
      System.out.println("named " + decoded(name));
    }
    try (RedisClient selected = connect(port, config().database(1))) {
      System.out.println("database 1 " + failed(selected::ping));
    }
  }

  static Object throttle(RedisClient client, String... more) {
    List<String> words = new ArrayList<>(List.of("user", "15", "30", "3600"));
    words.addAll(List.of(more));
    return client.sendCommand(THROTTLE, words.toArray(String[]::new));
  }

  static void throttles(RedisClient client) {
    System.out.println("fresh " + throttle(client));
    System.out.println("denied " + ((List<?>) throttle(client, "16")).get(0));
    System.out.println("exists " + client.exists("user") + " " + client.del("user"));
    byte[] key = new byte[256];
    for (int at = 0; at < key.length; at++) {
      key[at] = (byte) at;
    }
    byte[] policy = SafeEncoder.encode("api");
    for (byte[] bytes : List.of(key, key, java.util.Arrays.copyOf(key, 255))) {
      System.out.println("key " + shown(client.sendCommand(CHECK, policy, bytes)));
    }
  }

  static void pipelines(RedisClient client) {
    try (Pipeline pipeline = (Pipeline) client.pipelined()) {
      List<Response<Object>> replies = new ArrayList<>();
      for (int at = 0; at < 1500; at++) {
        replies.add(pipeline.sendCommand(CHECK, "many", "pipeline"));
      }
      pipeline.sync();
      int allowed = 0;
      boolean isDescending = true;
      for (Response<Object> reply : replies) {
        String shown = shown(reply.get());
        if (shown.startsWith("1 ")) {
          isDescending &= shown.equals("1 " + (999 - allowed) + " of 1000");
          allowed++;
        }
      }
      System.out.println("in order " + isDescending + " " + allowed + " " + replies.size());
    }
    try (Transaction transaction = (Transaction) client.multi()) {
      for (String policy : List.of("api", "no-such-policy", "api")) {
        transaction.sendCommand(CHECK, policy, "transaction");
      }
      for (Object reply : transaction.exec()) {
        System.out.println("transaction " + shown(reply));
      }
    }
  }

  static void parallel(RedisClient client) throws InterruptedException {
    AtomicInteger allowed = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 20; number++) {
      Thread thread = new Thread(() -> {
        for (int at = 0; at < 75; at++) {
          if (shown(client.sendCommand(CHECK, "many", "parallel")).startsWith("1 ")) {
            allowed.incrementAndGet();
          }
        }
      });
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    System.out.println("through a pool " + allowed);
  }

  static void tokens(String port, String token) {
    check(port, "the token:", config().password(token));
    check(port, "by its name:", config().user("gateway").password(token));
    check(port, "another:", config().password("guessed"));
    check(port, "no token:", config());
  }

  static void check(String port, String name, DefaultJedisClientConfig.Builder config) {
    try (RedisClient client = connect(port, config)) {
      String reply = failed(() -> shown(client.sendCommand(CHECK, "api", "t")));
      String[] words = reply.split(" ");
    System.out.println(name + " " + (words[0].endsWith(":") ? words[0] + " " + words[1] : reply));
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    protocol = arguments[0].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
    try (RedisClient client = connect(arguments[1], config())) {
      handshake(client, arguments[1]);
      throttles(client);
      pipelines(client);
      parallel(client);
      String unknown = failed(() -> shown(client.sendCommand(CHECK, "no-such-policy", "k")));
      System.out.println("unknown " + unknown);
      tokens(arguments[2], arguments[3]);
    }
    System.out.println("closed");
  }
}
