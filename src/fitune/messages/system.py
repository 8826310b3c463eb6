"""The operating system's own words for an error, which it has in English alone wherever Python runs."""

import errno
import os

_CHINESE = {
    errno.EPERM: "不允许这样操作",
    errno.ENOENT: "没有这个文件或目录",
    errno.EIO: "读写出错，磁盘或网络盘可能有问题",
    errno.ENXIO: "没有这个设备",
    errno.EAGAIN: "资源暂时不可用",
    errno.ENOMEM: "内存不够",
    errno.EACCES: "没有权限",
    errno.EBUSY: "正被占用",
    errno.EEXIST: "已经存在",
    errno.EXDEV: "不在同一个磁盘上",
    errno.ENOTDIR: "不是目录",
    errno.EISDIR: "是一个目录",
    errno.EINVAL: "参数无效",
    errno.ENFILE: "系统打开的文件太多",
    errno.EMFILE: "打开的文件太多",
    errno.EFBIG: "文件太大",
    errno.ENOSPC: "磁盘已满",
    errno.EROFS: "磁盘是只读的",
    errno.EPIPE: "管道已断开",
    errno.ENAMETOOLONG: "文件名太长",
    errno.ENOTEMPTY: "目录不是空的",
    errno.ELOOP: "符号链接绕成了圈",
    errno.EDQUOT: "磁盘配额已用完",
    errno.EADDRINUSE: "地址已被占用",
    errno.EADDRNOTAVAIL: "地址不可用",
    errno.ENETUNREACH: "网络不可达",
    errno.ECONNREFUSED: "连接被拒绝",
    errno.ECONNRESET: "连接被断开",
    errno.ETIMEDOUT: "超时",
    errno.ESTALE: "网络盘上的文件已失效",
}


def system_reason(error: OSError) -> str:
    """Why the system refused, for people; its own words where the Chinese for them is not known."""
    from fitune.messages import language

    told = error.strerror or (os.strerror(error.errno) if error.errno else str(error)) or type(error).__name__
    return _CHINESE.get(error.errno or 0, told) if language() == "zh" else told
