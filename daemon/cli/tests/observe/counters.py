"""Counts requests per key and window, and knows nothing of Tollgate.

Arguments: server or cluster, port, the name with KEY and WINDOW, the length of a window in seconds, how long a
counter lives, the number of keys, the number of requests, and the pause between two of them in seconds.
Prints the number of requests of each key as JSON.
"""

import json
import random
import sys
import time

import redis
from redis.cluster import RedisCluster

kind, port, name, window, expiry, keys, requests, pause = sys.argv[1:]
client = {"server": redis.Redis, "cluster": RedisCluster}[kind](host="127.0.0.1", port=int(port))
counts = {}
for _ in range(int(requests)):
    # Some keys are used much more than others.
    key = f"user:{min(random.randrange(int(keys)), random.randrange(int(keys)))}"
    counter = name.replace("KEY", key).replace("WINDOW", str(int(time.time() / float(window))))
    pipeline = client.pipeline(transaction=True)
    pipeline.incr(counter)
    pipeline.expire(counter, int(expiry))
    pipeline.execute()
    counts[key] = counts.get(key, 0) + 1
    time.sleep(float(pause))
print(json.dumps(counts))
