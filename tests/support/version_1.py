"""Messages of protocol version 1, as OpBoost 0.1.0 wrote them."""

from __future__ import annotations

import base64
import zlib


def written_by_0_1(text):
    return zlib.decompress(base64.b85decode(text))


HELLO_1 = written_by_0_1(
    "c-r$1aPs#L4&i#X!hGJQ>P<_2CjHl)vZO#H>{HfE6>EtT3#&}d>U<Ae@*fBo7#SD@7(jrFfscWWft7&+$N~aJ7PvSM"
    "kYs_1CxF=u3`{_50A)V_nj-*Z1C3)a1Y&j|E=w&c&dkpP>f{0I=KzX{K-IAVaYkxRPCk^Motc-y05#VIDs~0rJ|Gih"
    "whUAZ1VH9w<tN2wBo=3Y_$R>ji-5)1!LAj6x}AX)T`$Pqg2bYdO0XCUSR51%H=u3<0Uic1Xh`sYO=DnYVUPe)77Q@J"
    "1?2O<!=#1*5{8Tn2*AdG8*re}Ft-VysS`j`Cjq4ukkl}t*~@^153{2<Bfo$Fiy64Ue@OT<004puK1="
)
RECEIPT_1 = written_by_0_1(
    "c-r$1aPs#L4&ic2Ua(@8nBj{Tdt-WA-+TA|Z48^?!K)hUxb?=TQ|ixj{sX}QMg|4}1`yz4;A3E8U}fL{vVee*1uo75"
    "Bw3*131Bt@0}~J%K-mv~<_JL9K;sw;ftVeL%TkMqGxPI+I(fkQIe=m!P<0^rqSWNn%z_dyKRYuo1!Nl=NFHd&86Z6Y"
    "h(UrTP(3O@dq7N(T{2KH5a0yj;>`5C#FEmYR3KXds4f79T5cdtPAw|QOv_A8EJ<Z>0jjG(QY(R^7DQ*HCW76S15~pF"
    "qK*lqP60_BD-fsVl@wJ1X^>wzfWG5^NHID9i8~N|tO7{>2LWav&dN_>H~|hn5wIS1aA*ra!yckX2F<R5#G;Z)uow$i"
    "92Acy7$IhZ01ty0G$wh#rZF(Hfc@3M00Ue=J`X%jb)ad0kpTe&8E^v*G#chM0W@_2XzC=Ov?P?aKvQplrrrTf-T_VC"
    "14=7E=?paW8EEPYkis1VD$vwdps8;_Qx8j@jA;6(&4-0)aYjDO$>1<EGB7eTFf=d<F)%hTF))qN1#v)ZEbdfbAP#`^"
    "6r|>&@PT;=%>EBaw+sM-dvEU"
)
ALIGNED_1 = written_by_0_1(
    "c-r$1aPs#L4&icbUN9r`KznOn?&T$yUFT14bu7?$`!6E3MlQZwj?2K}KM)*XWMB|r00AxrJ_a@hRt63r3kVol;Nm<$"
    "k_9TB0A@2VFafavl>Go`jsTPmG>*X#h}nU-EVZaOGd~ZglLxGy11Kf}RR@w!%*jm8OHBduvorHjK(?`g<bj5q0n!tI"
    "I0nfc6`(yJCde)cs2B*a0&zi6etsHA9H_<zhdPkiNtq?Ni3JP{4nQ>}5Oqx0%uCKM%_{-Y7a(dF9e~6VB=rht>PzxV"
    "5_5nw$gdng-*G^s!20eWxkm&^A2Uc_VmiYaaQKOU^{|6OTL2pN46NvG1L?`iPXh8;;9{V7+`$Mj8w7Y5#Go<B12&C;"
    "nFVY{2LlXn0r@=eIF*5>0Y(M{5MaO!IM8TGD6N5}P6JJy0h-wkXzCr%)O(=Gd!We&pvecI$wxqGn7<Ox)F+^+&w$bj"
    "NNU*7!i9kbd{`J785o%v7#bLb7#JIv7??)sf;b>Hfp}rZVlIf?fW%i|APoLP(kTM~zkFs^"
)
